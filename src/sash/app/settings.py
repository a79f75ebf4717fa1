"""The settings of a program that runs Sash: one `sash.toml`, the environment over it, flags over that."""

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from ipaddress import ip_address
from math import isfinite
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, get_args, get_origin

from sash.engine.redaction import redact
from sash.errors import InvalidConfig
from sash.values.sessions import CONFIRM, DENYLIST
from sash.values.validation import check_amount, whole

Origin = str

PREFIX = "SASH_"
FILE = "sash.toml"
SECRETS = frozenset({"home_token", "api_key"})
LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})
_YES = frozenset({"1", "true", "yes", "on"})
_NO = frozenset({"0", "false", "no", "off"})


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that can be set. Its environment name is `SASH_` and the name in capitals."""

    host: Annotated[str, "the address to listen at"] = "127.0.0.1"
    port: Annotated[int, "the port to listen at"] = 8765
    data: Annotated[Path | None, "the folder in which everything is kept"] = None
    store: Annotated[str, "sqlite, files or memory"] = "sqlite"
    log_level: Annotated[Literal["debug", "info", "warning", "error"], "how much is logged"] = "warning"
    allowed_hosts: Annotated[
        tuple[str, ...], "names by which the server may be called, beside its addresses"
    ] = ()
    allowed_origins: Annotated[tuple[str, ...], "web pages of other origins that may call the server"] = ()
    max_body_bytes: Annotated[int, "the largest body of a request"] = 4 << 20
    max_import_bytes: Annotated[int, "the largest session to import"] = 64 << 20
    max_sessions: Annotated[int, "how many active sessions an owner may have"] = 10_000
    max_subscribers: Annotated[int, "how many may listen to events at a time"] = 5_000
    otel_endpoint: Annotated[str | None, "where OpenTelemetry spans are sent, by OTLP over HTTP"] = None
    home: Annotated[Literal["demo", "none"], "the house if home_url is not set: demo, or none"] = "demo"
    home_url: Annotated[str | None, "the address of a Home Assistant"] = None
    home_token: Annotated[str | None, "its long-lived access token"] = field(default=None, repr=False)
    vocabulary: Annotated[Path | None, "a file with words of your own for things in the house"] = None
    model: Annotated[str | None, "the model that answers; none is the offline one"] = None
    api_key: Annotated[str | None, "the model provider's key"] = field(default=None, repr=False)
    api_base: Annotated[str | None, "the model provider's address, if it is not OpenAI"] = None
    api_mode: Annotated[Literal["auto", "chat", "responses"], "which of OpenAI's two APIs is spoken"] = "auto"
    azure_endpoint: Annotated[str | None, "the address of an Azure OpenAI resource"] = None
    api_version: Annotated[str | None, "the version of Azure's API"] = None
    summaries: Annotated[bool, "let the model sum up what left the window"] = False
    sliding_window_max_tokens: Annotated[
        int | None, "the window of a new session; none is as the model can read"
    ] = None
    max_history_turns: Annotated[int | None, "the window of a new session, in turns"] = None
    conversation_max_turns: Annotated[int, "the turns that /conversation keeps"] = 10
    allow_actuation: Annotated[bool, "let agents change the house"] = False
    allowlisted_services: Annotated[tuple[str, ...], "what they may use: light, switch.turn_off, …"] = ()
    denylisted_services: Annotated[tuple[str, ...], "what they may never use"] = DENYLIST
    require_confirmation: Annotated[tuple[str, ...], "what needs a yes"] = CONFIRM
    dry_run: Annotated[bool, "only say what would be done"] = False
    resume_interrupted: Annotated[bool, "go on by itself with turns that were interrupted"] = False
    max_cost_per_turn_usd: Annotated[float | None, "the most that a turn may cost"] = None
    max_cost_per_day_usd: Annotated[float | None, "the most that an owner's day may cost"] = None

    def __post_init__(self) -> None:
        if not 0 <= self.port <= 65535:
            raise InvalidConfig(f"port must be from 0 to 65535, got {self.port}", option="port")
        for name in ("max_body_bytes", "max_import_bytes", "max_sessions", "max_subscribers"):
            if getattr(self, name) < 1:
                raise InvalidConfig(f"{name} must be at least 1, got {getattr(self, name)}", option=name)
        for name in ("max_cost_per_turn_usd", "max_cost_per_day_usd"):
            check_amount(name, getattr(self, name))
        if not 1 <= self.conversation_max_turns <= 100:
            raise InvalidConfig(
                "conversation_max_turns must be from 1 to 100", option="conversation_max_turns"
            )
        if self.home_url is not None and not self.home_token:
            raise InvalidConfig(
                "home_url needs home_token: make a long-lived access token in Home Assistant (your profile, "
                "Security) and set SASH_HOME_TOKEN",
                option="home_token",
            )

    @property
    def origins(self) -> tuple[str, ...]:
        """The origins that may call, as a browser writes them."""
        return tuple(origin.rstrip("/").lower() for origin in self.allowed_origins)

    @property
    def folder(self) -> Path:
        """Where everything is kept."""
        return self.data or default_data()


@dataclass(frozen=True, slots=True)
class Loaded:
    """The settings in force, and where each came from: a flag, the environment, the file, or the default."""

    settings: Settings
    origins: dict[str, Origin]
    file: Path | None


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    try:
        return host in LOOPBACK or ip_address(host).is_loopback
    except ValueError:
        return False


def default_data() -> Path:
    """Return the folder in which a user's programs keep what they know."""
    base = os.environ.get("XDG_DATA_HOME")
    return (Path(base) if base else Path.home() / ".local" / "share") / "sash"


def load_settings(
    flags: Mapping[str, Any] | None = None,
    *,
    file: Path | None = None,
    environ: Mapping[str, str] | None = None,
) -> Loaded:
    """Read the settings; a flag that is None was not given."""
    environ = os.environ if environ is None else environ
    found = _find(file, environ)
    values, origins = {}, dict.fromkeys(HELP, "default")
    given = (
        (str(found), _read(found) if found else {}),
        ("environment", _from_environment(environ)),
        ("flag", {name: value for name, value in (flags or {}).items() if value is not None}),
    )
    for origin, some in given:
        for name, value in some.items():
            values[name] = _convert(name, value, origin)
            origins[name] = origin
    return Loaded(Settings(**values), origins, found)


def shown(name: str, value: Any) -> str:
    """Return a setting's value for somebody to read, and a secret's only as that there is one."""
    if value is None or value == ():
        return "–"
    if name in SECRETS:
        return "set"
    return redact(", ".join(value) if isinstance(value, tuple) else str(value))


def _find(file: Path | None, environ: Mapping[str, str]) -> Path | None:
    wanted = file or (Path(environ[PREFIX + "CONFIG"]) if environ.get(PREFIX + "CONFIG") else None)
    if wanted is not None:
        if not wanted.is_file():
            wrong = f"{wanted} is a folder" if wanted.is_dir() else f"there is no {wanted}"
            raise InvalidConfig(f"{wrong}: check --config and SASH_CONFIG", option="config")
        return wanted
    base = environ.get("XDG_CONFIG_HOME")
    usual = (Path(base) if base else Path.home() / ".config") / "sash" / FILE
    return usual if usual.is_file() else None


def _read(file: Path) -> dict[str, Any]:
    try:
        values = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidConfig(f"{file} cannot be read: {error}", option="config") from error
    for name in values:
        if name not in HELP:
            raise InvalidConfig(f"{file} has {name!r}, which is no setting: {_alike(name)}", option=name)
    return values


def _from_environment(environ: Mapping[str, str]) -> dict[str, str]:
    named = ((name, environ.get(PREFIX + name.upper())) for name in HELP)
    return {name: value for name, value in named if value not in (None, "")}


def _convert(name: str, value: Any, origin: Origin) -> Any:
    """Make a value what the setting is, or say what is wrong with it; a secret is not said."""
    kind = _KINDS[name]
    try:
        return _as(kind, value)
    except (ValueError, TypeError, AttributeError) as error:
        told = "it" if name in SECRETS else redact(repr(value))
        raise InvalidConfig(
            f"{name} ({origin}) must be {_called(kind)}, and {told} is not", option=name
        ) from error


def _as(kind: Any, value: Any) -> Any:
    if kind is bool:
        return _flag(value)
    if kind in (int, float):
        if isinstance(value, bool) or not isfinite(float(value)):
            raise ValueError
        return float(value) if kind is float else _whole(value)
    if kind is Path:
        return Path(value).expanduser()
    if get_origin(kind) is tuple:
        parts = value.split(",") if isinstance(value, str) else value
        return tuple(part.strip() for part in parts if part.strip())
    if get_origin(kind) is Literal and value not in get_args(kind):
        raise ValueError
    if not isinstance(value, str):
        raise TypeError
    return value


def _whole(value: Any) -> int:
    """Read a whole number; half of one is none."""
    number = whole(value)
    if isinstance(number, float):
        raise ValueError
    return int(number)


def _flag(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lower() in _YES | _NO:
        return value.lower() in _YES
    raise ValueError


def _called(kind: Any) -> str:
    if get_origin(kind) is Literal:
        return " or ".join(get_args(kind))
    names = {bool: "true or false", int: "a whole number", float: "a number", Path: "a path"}
    return names.get(kind, "a list of names" if get_origin(kind) is tuple else "a text")


def _alike(name: str) -> str:
    close = get_close_matches(name, HELP, 1)
    return f"did you mean {close[0]}?" if close else "`sash doctor` lists the settings"


def _kind(annotated: Any) -> Any:
    """Return what a setting is, if it is set at all."""
    kind = get_args(annotated)[0]
    return next(k for k in get_args(kind) if k is not NoneType) if isinstance(kind, UnionType) else kind


HELP: dict[str, str] = {setting.name: get_args(setting.type)[1] for setting in fields(Settings)}
_KINDS = {setting.name: _kind(setting.type) for setting in fields(Settings)}
