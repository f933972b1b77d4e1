"""The loop: context → model → calls → … → answer, recorded as facts."""
