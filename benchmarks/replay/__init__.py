"""The time machine over many runs: tests made of recordings and broken on purpose, and forks at every step."""
