"""Benchmarks of Journeyman: what it costs to run, to import, and whether it computes what its tools compute."""
