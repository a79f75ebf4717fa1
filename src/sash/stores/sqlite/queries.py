"""The SQL of the store. The files are under `sql/`, and every query has a name."""

import re
from importlib.resources import files

_HEAD = "-- name: "
_REFERENCE = re.compile(r"\{(\w+)\}")


def read_script(name: str) -> str:
    """Return the text of the file `sql/{name}.sql`."""
    return files("sash.stores.sqlite").joinpath("sql", f"{name}.sql").read_text()


def read_queries(name: str) -> dict[str, str]:
    """Return the queries of a file by name. Each query begins with a line `-- name: …`.

    `{name}` in a query stands for an earlier query.
    """
    _, *parts = f"\n{read_script(name)}".split(f"\n{_HEAD}")
    queries: dict[str, str] = {}
    for head, _, body in (part.partition("\n") for part in parts):
        queries[head.strip()] = _REFERENCE.sub(lambda found: queries[found[1]], body.strip().rstrip(";"))
    return queries


SQL = read_queries("queries")
