"""`sash mcp`: MCP over standard input and output, for clients that start their servers."""

from sash.cli.options import LOCAL_OWNER, CommonOptions, Config, Data, Owner, Store


def mcp(data: Data = None, store: Store = None, config: Config = None, owner: Owner = LOCAL_OWNER) -> None:
    """Serve MCP over standard input and output."""
    settings = CommonOptions(data, store, config).load_settings().settings

    from sash.cli.log_setup import log_to_stderr
    from sash.server.mcp.stdio import serve_stdio

    log_to_stderr(settings)
    serve_stdio(settings, owner)
