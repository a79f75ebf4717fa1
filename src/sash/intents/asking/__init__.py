"""Questions about the home as it is now, answered from the index."""
