"""The engine: it knows ports only, no storage driver and no HTTP."""
