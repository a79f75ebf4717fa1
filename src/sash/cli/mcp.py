"""`sash mcp`: MCP over standard input and output, for clients that start their servers themselves."""

import logging

from sash.cli.options import LOCAL, Config, Data, Owner, Place, Store


def mcp(data: Data = None, store: Store = None, config: Config = None, owner: Owner = LOCAL) -> None:
    """Speak MCP over standard input and output."""
    settings = Place(data, store, config).load().settings

    from sash.server.stdio import serve_stdio

    logging.basicConfig(level=settings.log_level.upper())  # to standard error: the output is for the client
    serve_stdio(settings, owner)
