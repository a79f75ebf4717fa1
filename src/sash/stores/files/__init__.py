"""The store as readable files, for one process. It imports no other backend."""
