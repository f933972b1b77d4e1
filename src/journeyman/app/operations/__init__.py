"""What can be done, written once for every door: each operation with its input, output, permission, paging and words.

An operation is a function of a desk. Doors call it, and render from it what they need: routes and the OpenAPI document,
commands and their help, the page of the reference. ``table`` has them all by name.
"""
