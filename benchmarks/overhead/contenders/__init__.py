"""One module for each contender; each runs in a process, and a Python environment, of its own."""
