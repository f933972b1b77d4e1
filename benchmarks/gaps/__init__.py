"""How well requests that no tool can serve are told from those that one can: ``python -m benchmarks.gaps``."""
