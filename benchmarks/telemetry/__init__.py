"""What tracing and metrics cost, and how soon spans arrive: ``python -m benchmarks.telemetry``."""
