"""`sash serve`: the server, until a signal stops it."""

from typing import Annotated

import typer

from sash.cli.options import CommonOptions, Config, Data, Store


def serve(
    host: Annotated[
        str | None, typer.Option(help="The address to listen on. The default is 127.0.0.1.")
    ] = None,
    port: Annotated[int | None, typer.Option(help="The port to listen on. The default is 8765.")] = None,
    data: Data = None,
    store: Store = None,
    config: Config = None,
    log_level: Annotated[str | None, typer.Option(help="debug, info, warning or error.")] = None,
) -> None:
    """Serve REST, events, MCP and the documentation on one port."""
    loaded = CommonOptions(data, store, config).load_settings(host=host, port=port, log_level=log_level)

    from sash.cli.log_setup import log_to_stderr
    from sash.cli.terminal.console import make_console
    from sash.server.run import run_server

    log_to_stderr(loaded.settings)
    console = make_console()
    run_server(loaded.settings, lambda line: console.print(line, soft_wrap=True))
