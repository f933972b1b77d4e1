"""Grounding and the label-free judge, measured on calls and runs that nobody here wrote."""
