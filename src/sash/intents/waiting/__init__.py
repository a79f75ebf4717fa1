"""Sentences about later: what is to be done or told at a time, or when a thing has a state."""
