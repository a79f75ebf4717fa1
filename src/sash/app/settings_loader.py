"""Loads the settings. Flags take precedence over environment variables, and variables over `sash.toml`."""

import os
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from sash.app.settings import SECRETS, Settings, xdg_folder
from sash.engine.redaction import redact
from sash.errors import InvalidConfig
from sash.values.codec import adapter

PREFIX = "SASH_"
FILE_NAME = "sash.toml"
# Variables that are no settings: the configuration file, a client's token, and completion in the shell.
OTHER_VARIABLES = frozenset(
    {"SASH_CONFIG", "SASH_TOKEN", "_SASH_COMPLETE", "SASH_HA_CACHE", "SASH_UPDATE_GOLDEN"}
)

# The first word in the type of a Pydantic error, and the value that it expects.
KINDS = {
    "bool": "true or false",
    "float": "a number",
    "int": "a whole number",
    "path": "a path",
    "string": "text",
    "tuple": "a list of names",
}

NAMES = tuple(setting.name for setting in fields(Settings))


@dataclass(frozen=True, slots=True)
class LoadedSettings:
    """The settings, and the origin of each: "flag", "environment", the path of the file, or "default".

    `warnings` name environment variables that begin with `SASH_` but are not settings.
    """

    settings: Settings
    origins: dict[str, str]
    file: Path | None
    warnings: tuple[str, ...] = ()


def load_settings(
    flags: Mapping[str, Any] | None = None,
    *,
    file: Path | None = None,
    environ: Mapping[str, str] | None = None,
) -> LoadedSettings:
    """Load the settings. A flag with the value None and an empty variable count as not set.

    Raise `InvalidConfig` if a value is invalid.
    """
    environ = os.environ if environ is None else environ
    found = _find_file(file, environ)
    variables = {name: environ.get(PREFIX + name.upper()) or None for name in NAMES}
    sources = (
        (str(found), _read_file(found) if found else {}),
        ("environment", variables),
        ("flag", flags or {}),
    )
    values: dict[str, Any] = {}
    origins = dict.fromkeys(NAMES, "default")
    for origin, source in sources:
        given = {name: value for name, value in source.items() if value is not None}
        values |= given
        origins |= dict.fromkeys(given, origin)
    try:
        settings: Settings = adapter(Settings).validate_python(values)
    except ValidationError as error:
        problem = error.errors()[0]
        name = str(problem["loc"][0])
        raise InvalidConfig(
            f"{_name_as_written(name, origins[name])} {_explain(problem, is_secret=name in SECRETS)}",
            option=name,
        ) from None  # Pydantic's error shows the value.
    return LoadedSettings(settings, origins, found, tuple(_warn_of_unknown(environ)))


def show_value(name: str, value: Any) -> str:
    """Return the value of a setting as text: a secret as "set", a missing value as a dash."""
    if value is None or value == ():
        return "–"
    if name in SECRETS:
        return "set"
    return redact(", ".join(value) if isinstance(value, tuple) else str(value))


def _explain(problem: Mapping[str, Any], *, is_secret: bool) -> str:
    """Return what a value must be, and what it is unless it is a secret."""
    kind = KINDS.get(problem["type"].partition("_")[0])
    rule = f"must be {kind}" if kind else problem["msg"].removeprefix("Value error, ").removeprefix("Input ")
    return rule if is_secret else f"{rule}, not {redact(repr(problem['input'])):.200}"


def _name_as_written(name: str, origin: str) -> str:
    """Return a setting as the user wrote it: `SASH_PORT`, `--port`, or `port in FILE`."""
    if origin == "environment":
        return PREFIX + name.upper()
    return f"--{name.replace('_', '-')}" if origin == "flag" else f"{name} in {origin}"


def _warn_of_unknown(environ: Mapping[str, str]) -> Iterator[str]:
    known = [PREFIX + name.upper() for name in NAMES]
    for variable in sorted(environ):
        if variable.startswith(PREFIX) and variable not in OTHER_VARIABLES and variable not in known:
            yield f"{variable} is not a setting: {_advise(variable, known)}"


def _advise(name: str, known: Sequence[str]) -> str:
    close = get_close_matches(name, known, 1)
    return f"did you mean {close[0]}?" if close else "`sash doctor` lists the settings"


def _find_file(file: Path | None, environ: Mapping[str, str]) -> Path | None:
    """Return the file of the argument or of `SASH_CONFIG`, else the user's `sash.toml`, else None.

    Raise `InvalidConfig` if the argument or the variable names no file.
    """
    given = file or (Path(environ[PREFIX + "CONFIG"]) if environ.get(PREFIX + "CONFIG") else None)
    if given is None:
        default_file = xdg_folder(environ, "XDG_CONFIG_HOME", ".config") / FILE_NAME
        return default_file if default_file.is_file() else None
    if not given.is_file():
        problem = f"{given} is a folder" if given.is_dir() else f"there is no {given}"
        raise InvalidConfig(f"{problem}: check --config and SASH_CONFIG", option="config")
    return given


def _read_file(file: Path) -> dict[str, Any]:
    try:
        values = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidConfig(f"{file} cannot be read: {error}", option="config") from error
    for name in values:
        if name not in NAMES:
            raise InvalidConfig(
                f"{file} has {name!r}, which is not a setting: {_advise(name, NAMES)}", option=name
            )
    return values
