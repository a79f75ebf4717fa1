"""Sentences that are understood without a model. They import ports and the home index, never the engine."""
