"""One turn, from its first model call to its last commit. Only the engine imports it."""
