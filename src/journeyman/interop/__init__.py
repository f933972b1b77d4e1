"""Tools of other frameworks as ours, and ours as theirs. Each module needs its own extra, and is imported by its users.

A tool that comes in is governed like any other: declare what it may do (``risk``, ``read_only``, ``permissions`` …), or
the policy's default applies. A tool that goes out is called by the other framework: its arguments are still checked,
but nobody approves, limits or records the call.
"""
