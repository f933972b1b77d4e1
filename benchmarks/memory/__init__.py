"""How well and how fast memory finds documents, on both databases, beside a plain scan of the vectors."""
