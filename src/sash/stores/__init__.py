"""Backends of the store contract, and their shared rules. They never import the engine or each other."""
