"""Writes the answers to sentences that are understood without a model, in six languages."""
