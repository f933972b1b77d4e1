"""Finding things by words and by meaning: the one implementation for tools, memory, gaps and playbooks."""
