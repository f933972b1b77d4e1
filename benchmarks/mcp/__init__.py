"""What MCP costs: a governed call against a bare one, the start of many tools, and stalls by hostile servers."""
