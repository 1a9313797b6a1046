"""The door of machines: TLS with a CA of our own, the agent's calls and its boot media."""
