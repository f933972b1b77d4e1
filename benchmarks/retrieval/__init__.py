"""How well and how fast we find: tools by a question, notes by a paraphrase, vectors by a vector."""
