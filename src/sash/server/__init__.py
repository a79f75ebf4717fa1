"""The HTTP and MCP server over one runtime. It imports `sash.app` and the engine, never the command line."""
