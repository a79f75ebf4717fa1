"""Sessions as records in memory, for the memory store and the files store. It imports no backend."""
