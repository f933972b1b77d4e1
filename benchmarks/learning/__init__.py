"""How well practice helps: retrieval, evidence and speed offline, and live runs of any model on stateful tools."""
