"""What the chat service costs beside a bare endpoint, and what it holds."""
