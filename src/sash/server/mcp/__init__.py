"""MCP by the official SDK: tools, resources, prompts and tasks. It imports no route and no middleware."""
