"""Backends of the store contract, and rules that they share. No backend imports the engine or another one."""
