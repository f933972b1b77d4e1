"""The attacks and the ordinary tasks of AgentDojo, replayed through the executor."""
