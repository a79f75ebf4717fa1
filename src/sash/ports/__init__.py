"""Protocols that adapters implement, and the values they exchange. Ports import values and memory only."""
