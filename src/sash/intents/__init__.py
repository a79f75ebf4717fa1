"""Sentences that are understood without a model."""
