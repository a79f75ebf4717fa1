"""Sentences that are understood without a model. This package never imports the engine."""
