"""The default store: one SQLite file. It imports no other backend."""
