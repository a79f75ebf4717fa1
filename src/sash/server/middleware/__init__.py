"""ASGI middleware that every request passes, MCP requests too. It imports no route and no MCP module."""
