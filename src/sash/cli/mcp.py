"""`sash mcp`: MCP over standard input and output, for clients that start their servers themselves."""

from sash.cli.options import LOCAL, Config, Data, Owner, Place, Store


def mcp(data: Data = None, store: Store = None, config: Config = None, owner: Owner = LOCAL) -> None:
    """Speak MCP over standard input and output."""
    settings = Place(data, store, config).load().settings

    from sash.cli.logs import log
    from sash.server.mcp.stdio import serve_stdio

    log(settings)  # to standard error: the output is for the client
    serve_stdio(settings, owner)
