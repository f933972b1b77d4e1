"""How well the models that need no server choose tools and fill arguments, on requests written beforehand."""
