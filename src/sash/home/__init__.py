"""The house: the port, its adapters, and what stands on it."""
