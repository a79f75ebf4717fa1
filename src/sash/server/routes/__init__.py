"""The REST routes: parse a request, call the service, encode the result. They import no MCP module."""
