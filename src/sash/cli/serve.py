"""`sash serve`: the server, until somebody says that it is enough."""

from typing import Annotated

import typer

from sash.cli.options import Config, Data, Place, Store


def serve(
    host: Annotated[str | None, typer.Option(help="The address to listen at.  [127.0.0.1]")] = None,
    port: Annotated[int | None, typer.Option(help="The port to listen at.  [8765]")] = None,
    data: Data = None,
    store: Store = None,
    config: Config = None,
    log_level: Annotated[str | None, typer.Option(help="debug, info, warning or error.")] = None,
) -> None:
    """Serve REST, events, MCP and the web page on one port."""
    settings = Place(data, store, config).load(host=host, port=port, log_level=log_level).settings

    from sash.cli.console import make_console
    from sash.cli.logs import log
    from sash.server.run import run_server

    log(settings)
    console = make_console()
    run_server(settings, lambda line: console.print(line, soft_wrap=True))
