"""The runtime: it runs turns, builds prompts, applies policies. It imports no store and no server.

Of `sash.models` it imports the offline model, which is the default, and the catalog of prices.
"""
