"""Backends of the store contract, and the rules that they share. They never import the engine or each other."""
