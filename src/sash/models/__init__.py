"""Model providers behind the model port. They import ports and values, never the engine."""
