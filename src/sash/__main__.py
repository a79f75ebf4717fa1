"""`python -m sash` is the command line."""

from sash.cli.main import app

app(prog_name="sash")
