"""`sash mcp`: MCP over standard input and output, for clients that start their servers."""

from sash.cli.options import CommonOptions, with_common_options


@with_common_options
def mcp(options: CommonOptions) -> None:
    """Serve MCP over standard input and output."""
    settings = options.load_settings().settings

    from sash.cli.log_setup import log_to_stderr
    from sash.server.mcp.stdio import serve_stdio

    log_to_stderr(settings)
    serve_stdio(settings, options.owner)
