"""Listeners that turn a run's events into logs and spans. They carry metadata only, unless content was asked for."""
