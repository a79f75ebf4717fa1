"""`python -m sash` is the command line."""

from sash.cli import app

app(prog_name="sash")
