"""MCP by the official SDK: the tools of the agent and of the house, for clients of both eras."""
