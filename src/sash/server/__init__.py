"""The server: one runtime, reachable by HTTP, server-sent events and MCP."""
