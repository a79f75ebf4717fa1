"""One module per command of `sash`, named after it. Commands do not import each other."""
