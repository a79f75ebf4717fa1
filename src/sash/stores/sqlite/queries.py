"""The SQL of the store. The files are under `sql/`, and every query has a name."""

from importlib.resources import files

_HEAD = "-- name: "


def read_script(name: str) -> str:
    """Return the text of the file `sql/{name}.sql`."""
    return files("sash.stores.sqlite").joinpath("sql", f"{name}.sql").read_text()


def read_queries(name: str) -> dict[str, str]:
    """Return the queries of a file by name. Each query begins with a line `-- name: …`."""
    _, *parts = f"\n{read_script(name)}".split(f"\n{_HEAD}")
    return {head.strip(): body.strip().rstrip(";") for head, _, body in (p.partition("\n") for p in parts)}


SQL = read_queries("queries")
