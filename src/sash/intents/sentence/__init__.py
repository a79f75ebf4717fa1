"""Reads a sentence: its clauses, and what each of them says. It knows words and names, but no states."""
