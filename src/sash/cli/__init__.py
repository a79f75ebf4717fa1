"""The command line: it parses, calls, and prints. Each command imports what it needs when it is run."""

import sys

try:
    import typer  # noqa: F401
except ModuleNotFoundError as missing:
    sys.exit(f"The command line needs {missing.name}: install it with  pip install 'sash[server,home]'")

from sash.cli.program import app

__all__ = ["app"]
