"""The settings of the programs that run Sash.

Flags take precedence over environment variables, and variables over `sash.toml`.
"""

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, FiniteFloat, ValidationError

from sash.engine.redaction import redact
from sash.errors import InvalidConfig
from sash.stores.registry import DEFAULT_BACKEND
from sash.values.codec import adapter
from sash.values.sessions import CONFIRM, DENYLIST
from sash.values.validation import MAX_DOLLARS

PREFIX = "SASH_"
FILE_NAME = "sash.toml"
SECRETS = frozenset({"home_token", "api_key"})
REMOVAL = "!"
LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})


def _refuse_bool(value: Any) -> Any:
    """Raise `ValueError` for true and false, which Pydantic would read as 1 and 0."""
    if isinstance(value, bool):
        raise ValueError("must be a number")
    return value


def _split_names(value: Any) -> Any:
    """Return names as a tuple, without empty ones. Accept the text "light, switch" for a list."""
    parts = value.split(",") if isinstance(value, str) else value
    if not isinstance(parts, list | tuple):
        return value
    names = (part.strip() if isinstance(part, str) else part for part in parts)
    return tuple(name for name in names if name != "")


def _check_removals(names: tuple[str, ...]) -> tuple[str, ...]:
    """Raise `ValueError` if a name with `!` is not on the built-in denylist."""
    for name in names:
        if name.startswith(REMOVAL) and name.removeprefix(REMOVAL) not in DENYLIST:
            raise ValueError(f"{name} removes nothing: the built-in list has {', '.join(DENYLIST)}")
    return names


Whole = Annotated[int, BeforeValidator(_refuse_bool)]
Positive = Annotated[Whole, Field(ge=1)]
# Unlike the `Dollars` of a session it accepts text, because environment variables are text.
DollarSetting = Annotated[FiniteFloat, BeforeValidator(_refuse_bool), Field(ge=0, le=MAX_DOLLARS)]
Names = Annotated[tuple[str, ...], BeforeValidator(_split_names)]
Denied = Annotated[Names, AfterValidator(_check_removals)]
UserPath = Annotated[Path, AfterValidator(Path.expanduser)]


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings. The environment variable of a setting is `SASH_` and its name in capitals."""

    # The address and the port to listen on.
    host: str = "127.0.0.1"
    port: Annotated[Whole, Field(ge=0, le=65535)] = 8765
    # The folder of all data, and the store: a name or a URL scheme of `sash.stores.registry`.
    data: UserPath | None = None
    store: str = DEFAULT_BACKEND
    log_level: Literal["debug", "info", "warning", "error"] = "warning"
    # Host names of the server, in addition to its addresses.
    allowed_hosts: Names = ()
    # Origins of web pages that may call the server, in addition to its own.
    allowed_origins: Names = ()
    max_body_bytes: Positive = 4 << 20
    max_import_bytes: Positive = 64 << 20
    # The maximum number of active sessions per owner, and of event subscribers in all and per owner.
    max_sessions: Positive = 10_000
    max_subscribers: Positive = 5_000
    max_subscribers_per_owner: Positive = 200
    # The OTLP/HTTP address that receives OpenTelemetry spans.
    otel_endpoint: str | None = None
    # The home that is used if home_url is not set.
    home: Literal["demo", "none"] = "demo"
    # The address of a Home Assistant, and its long-lived access token.
    home_url: str | None = None
    home_token: str | None = field(default=None, repr=False)
    # A file with the user's own words for things in the home.
    vocabulary: UserPath | None = None
    # The model that answers; None is the offline model.
    model: str | None = None
    # The key and the address of the model provider; without an address it is OpenAI.
    api_key: str | None = field(default=None, repr=False)
    api_base: str | None = None
    # Which of OpenAI's two APIs is used.
    api_mode: Literal["auto", "chat", "responses"] = "auto"
    # The address of an Azure OpenAI resource, and the version of its API.
    azure_endpoint: str | None = None
    api_version: str | None = None
    # Allow images by public http and https URLs, which the model's server loads.
    allow_image_urls: bool = False
    # Let the model summarise evicted messages.
    summaries: bool = False
    # The window of a new session; None means as much as the model can read.
    sliding_window_max_tokens: Whole | None = None
    max_history_turns: Whole | None = None
    # The number of turns that /conversation keeps.
    conversation_max_turns: Annotated[Whole, Field(ge=1, le=100)] = 10
    # Let agents change the home, and with which services: light, switch.turn_off, …
    allow_actuation: bool = False
    allowlisted_services: Names = ()
    # Services that are refused, in addition to the built-in list. `!mqtt` removes mqtt from that list.
    denylisted_services: Denied = ()
    # Services that need approval.
    require_confirmation: Names = CONFIRM
    # Only report what an action would do.
    dry_run: bool = False
    # Continue interrupted turns when the server starts.
    resume_interrupted: bool = False
    # The maximum cost of a turn, and of a day of one owner.
    max_cost_per_turn_usd: DollarSetting | None = None
    max_cost_per_day_usd: DollarSetting | None = None

    def __post_init__(self) -> None:
        if self.home_url is not None and not self.home_token:
            raise InvalidConfig(
                "home_url needs home_token: make a long-lived access token in Home Assistant (your profile, "
                "Security) and set SASH_HOME_TOKEN",
                option="home_token",
            )

    @property
    def origins(self) -> tuple[str, ...]:
        """The allowed origins as browsers send them: in lower case and without a final slash."""
        return tuple(origin.rstrip("/").lower() for origin in self.allowed_origins)

    @property
    def denylist(self) -> tuple[str, ...]:
        """The services that are refused: the built-in list without removed entries, and the setting's own."""
        kept = tuple(name for name in DENYLIST if REMOVAL + name not in self.denylisted_services)
        return kept + tuple(name for name in self.denylisted_services if not name.startswith(REMOVAL))

    @property
    def folder(self) -> Path:
        """The folder of all data: the setting, or the user's data folder."""
        return self.data or _xdg_folder(os.environ, "XDG_DATA_HOME", ".local/share")


NAMES = tuple(setting.name for setting in fields(Settings))


@dataclass(frozen=True, slots=True)
class LoadedSettings:
    """The settings, and the origin of each: "flag", "environment", the path of the file, or "default"."""

    settings: Settings
    origins: dict[str, str]
    file: Path | None


def is_loopback(host: str) -> bool:
    """Return True if only this machine can reach the address."""
    try:
        return host in LOOPBACK or ip_address(host).is_loopback
    except ValueError:
        return False


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
        value = "" if name in SECRETS else f", not {redact(repr(values[name])):.80}"
        message = problem["msg"].removeprefix("Value error, ").removeprefix("Input ")
        raise InvalidConfig(
            f"{name} ({origins[name]}) {message}{value}", option=name
        ) from None  # Pydantic's error shows the value.
    return LoadedSettings(settings, origins, found)


def show_value(name: str, value: Any) -> str:
    """Return the value of a setting as text: a secret as "set", a missing value as a dash."""
    if value is None or value == ():
        return "–"
    if name in SECRETS:
        return "set"
    return redact(", ".join(value) if isinstance(value, tuple) else str(value))


def _find_file(file: Path | None, environ: Mapping[str, str]) -> Path | None:
    """Return the file of the argument or of `SASH_CONFIG`, else the user's `sash.toml`, else None.

    Raise `InvalidConfig` if the argument or the variable names no file.
    """
    given = file or (Path(environ[PREFIX + "CONFIG"]) if environ.get(PREFIX + "CONFIG") else None)
    if given is None:
        default_file = _xdg_folder(environ, "XDG_CONFIG_HOME", ".config") / FILE_NAME
        return default_file if default_file.is_file() else None
    if not given.is_file():
        problem = f"{given} is a folder" if given.is_dir() else f"there is no {given}"
        raise InvalidConfig(f"{problem}: check --config and SASH_CONFIG", option="config")
    return given


def _xdg_folder(environ: Mapping[str, str], variable: str, default: str) -> Path:
    """Return Sash's folder in the base folder that an XDG variable names, or in the default one."""
    base = environ.get(variable)
    return (Path(base) if base else Path.home() / default) / "sash"


def _read_file(file: Path) -> dict[str, Any]:
    try:
        values = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidConfig(f"{file} cannot be read: {error}", option="config") from error
    for name in values:
        if name not in NAMES:
            close = get_close_matches(name, NAMES, 1)
            advice = f"did you mean {close[0]}?" if close else "`sash doctor` lists the settings"
            raise InvalidConfig(f"{file} has {name!r}, which is not a setting: {advice}", option=name)
    return values
