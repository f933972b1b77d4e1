"""The time machine: recorded runs replayed, compared and made into tests. It reads facts; a replay has no effect."""
