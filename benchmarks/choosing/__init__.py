"""Which tool serves a request, and which tools are offered where there are very many."""
