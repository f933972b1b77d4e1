"""Language models: one adapter per wire format, and the names by which people ask for them.

Nothing is imported here, so that a program pays only for the adapter it uses.
"""
