"""Benchmarks that compare Sash with similar libraries: `python3 dev.py bench NAME`."""
