"""SQL is kept as SQL, in files under `sql/`, and looked up by name."""

from importlib.resources import files

_HEAD = "-- name: "


def script(name: str) -> str:
    """Return the text of one file."""
    return files("sash.stores.sqlite").joinpath("sql", f"{name}.sql").read_text()


def queries(name: str) -> dict[str, str]:
    """Return the queries of a file: each begins with a line `-- name: …`."""
    _, *parts = f"\n{script(name)}".split(f"\n{_HEAD}")
    return {head.strip(): body.strip().rstrip(";") for head, _, body in (p.partition("\n") for p in parts)}
