"""Backends of the store contract."""
