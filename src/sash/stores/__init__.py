"""Backends of the store contract. They import ports and values, never the engine or each other."""
