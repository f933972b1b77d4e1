"""Replay of the Berkeley Function-Calling Leaderboard's multi-turn ground truth through our executor."""
