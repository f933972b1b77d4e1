"""Writes fifty megabytes to its standard error, then fails to start."""

import sys

for _ in range(50_000):
    sys.stderr.write("x" * 999 + "\n")
sys.exit("out of disk: API_KEY=\x1b[31msk-live-0123456789abcdefghijklmnop")
