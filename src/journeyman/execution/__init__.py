"""The governed pipeline: every call of every tool, from every door, passes here once. One file per concern."""
