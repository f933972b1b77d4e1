"""One ledger of a run: what was said, by whom, and where each value came from. Grounding, learning and hints read it.

What follows from an origin is decided elsewhere: ``execution`` asks or refuses, ``learning`` keeps demonstrations.
"""
