"""Where facts are kept. One module an aggregate; nothing outside this room knows how."""
