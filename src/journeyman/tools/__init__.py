"""What a tool is, how it is described to a model, and how many of them are kept together. Runs nothing."""
