"""The runtime: it runs turns, builds prompts, applies policies. It imports no store, provider or server."""
