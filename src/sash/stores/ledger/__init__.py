"""Sessions as records in memory, shared by the memory and files stores."""
