"""Kills processes with -9, over and over, and counts what became of their runs and of every side effect."""
