"""Side-by-side measurements with the peers: `python3 dev.py bench NAME`."""
