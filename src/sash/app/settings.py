"""The settings of the programs that run Sash: their names, types, defaults and bounds.

`docs/settings.md` explains each of them to users. `app/settings_loader.py` reads them.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, FiniteFloat

from sash.errors import InvalidConfig
from sash.memory.digest import DIGEST_TOKENS, MIN_DIGEST_TOKENS
from sash.ports.session_rules import MAX_OPEN_TURNS
from sash.stores.registry import DEFAULT_BACKEND, describe_backends, has_backend
from sash.values.bounds import MAX_COUNT
from sash.values.sessions import (
    CONFIRM,
    DENYLIST,
    MAX_CONTINUATION_RETENTION_HOURS,
    Approvers,
    Budgets,
    Retention,
    SessionPolicy,
)
from sash.values.validation import MAX_DOLLARS, MAX_MESSAGE_BYTES

SECRETS = frozenset({"home_token", "api_key", "embedder_api_key"})
REMOVAL = "!"
# A `system_prompt` that begins with this character is the path of a file.
FILE_MARK = "@"
MAX_PROMPT_CHARACTERS = 64 << 10
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
            raise ValueError(f"can remove only entries of the built-in list ({', '.join(DENYLIST)})")
    return names


def _check_store(store: str) -> str:
    """Raise `ValueError` if the name or the URL belongs to no backend."""
    if not has_backend(store):
        raise ValueError(f"must be {describe_backends()}")
    return store


def _check_address(address: str) -> str:
    """Raise `ValueError` for an address that is not an HTTP address."""
    if not address.lower().startswith(("http://", "https://")):
        raise ValueError("must begin with http:// or https://")
    return address


def _check_file(file: Path) -> Path:
    """Raise `ValueError` if there is no such file."""
    if not file.is_file():
        raise ValueError("must be the path of a file")
    return file


def _check_prompt(prompt: str) -> str:
    """Raise `ValueError` if the prompt, or the file that it names, cannot be used."""
    _read_prompt(prompt)
    return prompt


def _read_prompt(prompt: str) -> str:
    """Return the text, or that of the file after `@`. Raise `ValueError` if it cannot be used."""
    text = prompt
    if prompt.startswith(FILE_MARK):
        try:
            text = Path(prompt.removeprefix(FILE_MARK)).expanduser().read_text(encoding="utf-8")
        except OSError as error:
            raise ValueError(f"must name a file that can be read ({error.strerror})") from error
        except UnicodeDecodeError as error:
            raise ValueError("must name a text file in UTF-8") from error
    text = text.strip()
    if not text or len(text) > MAX_PROMPT_CHARACTERS:
        limit = f"1 to {MAX_PROMPT_CHARACTERS:,} characters"
        raise ValueError(f"must be {limit} of text, or {FILE_MARK} and the path of such a file")
    return text


Whole = Annotated[int, BeforeValidator(_refuse_bool)]
Positive = Annotated[Whole, Field(ge=1, le=MAX_COUNT)]
Natural = Annotated[Whole, Field(ge=0, le=MAX_COUNT)]
Seconds = Annotated[FiniteFloat, BeforeValidator(_refuse_bool), Field(gt=0, le=3600)]
# Unlike the `Dollars` of a session it accepts text, because environment variables are text.
DollarSetting = Annotated[FiniteFloat, BeforeValidator(_refuse_bool), Field(ge=0, le=MAX_DOLLARS)]
Days = Annotated[FiniteFloat, BeforeValidator(_refuse_bool), Field(gt=0, le=36_500)]
Hours = Annotated[
    FiniteFloat, BeforeValidator(_refuse_bool), Field(gt=0, le=MAX_CONTINUATION_RETENTION_HOURS)
]
Names = Annotated[tuple[str, ...], BeforeValidator(_split_names)]
Denied = Annotated[Names, AfterValidator(_check_removals)]
UserPath = Annotated[Path, AfterValidator(Path.expanduser)]
UserFile = Annotated[UserPath, AfterValidator(_check_file)]
Address = Annotated[str, AfterValidator(_check_address)]


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings. The environment variable of a setting is `SASH_` and its name in capitals."""

    # The address and the port to listen on.
    host: str = "127.0.0.1"
    port: Annotated[Whole, Field(ge=0, le=65535)] = 8765
    # The folder of all data, and the store: a name or a URL scheme of `sash.stores.registry`.
    data: UserPath | None = None
    store: Annotated[str, AfterValidator(_check_store)] = DEFAULT_BACKEND
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
    otel_endpoint: Address | None = None
    # The home that is used if home_url is not set.
    home: Literal["demo", "none"] = "demo"
    # The address of a Home Assistant, and its long-lived access token.
    home_url: Address | None = None
    home_token: str | None = field(default=None, repr=False)
    # A file with the user's own words for things in the home.
    vocabulary: UserFile | None = None
    # The model that answers; None is the offline model.
    model: str | None = None
    # The key and the address of the model provider; without an address it is OpenAI.
    api_key: str | None = field(default=None, repr=False)
    api_base: Address | None = None
    # Which of OpenAI's two APIs is used.
    api_mode: Literal["auto", "chat", "responses"] = "auto"
    # The address of an Azure OpenAI resource, and the version of its API.
    azure_endpoint: Address | None = None
    api_version: str | None = None
    # Allow images by public http and https URLs, which the model's server loads.
    allow_image_urls: bool = False
    # The model whose vectors find evicted messages by their meaning, its key and its address.
    embedder_model: str | None = None
    embedder_api_key: str | None = field(default=None, repr=False)
    embedder_api_base: Address | None = None
    # The components of a vector, each of which is a byte; 0 means as many as the model has.
    embedder_dimensions: Annotated[Whole, Field(ge=0, le=10_000)] = 256
    # What the agent is and how it speaks: a text, or @ and the path of a file. Sash adds its rules.
    system_prompt: Annotated[str, AfterValidator(_check_prompt)] | None = None
    # Let the model summarise evicted messages.
    summaries: bool = False
    # Let the model find lasting facts in messages, and remember them for the owner.
    fact_extraction: bool = False
    # The maximum tokens of the digest of evicted turns, and of a summary.
    summary_tokens: Annotated[Whole, Field(ge=MIN_DIGEST_TOKENS, le=100_000)] = DIGEST_TOKENS
    # The messages that a model with a small context sees word for word if it answers only one turn.
    # None depends on the model of the session.
    last_k: Positive | None = None
    # False keeps all messages in the window of a new session.
    sliding_window_enable: bool = True
    # The size of the window of a new session; None depends on the model.
    sliding_window_max_tokens: Positive | None = None
    # System messages in a window are not evicted.
    sliding_window_preserve_system: bool = True
    # The number of turns in the window of a new session; 0 means no limit.
    max_history_turns: Natural = 0
    # The number of turns that /conversation keeps.
    conversation_max_turns: Annotated[Whole, Field(ge=1, le=100)] = 10
    # A message to /conversation without an id starts a conversation and returns its id.
    auto_create_conversation_id: bool = True
    # Answer /conversation and questions after a time that the turn is still running.
    early_wait_enable: bool = False
    early_wait_seconds: Seconds = 5.0
    # The time between two events with partial text.
    partial_update_interval_ms: Annotated[Whole, Field(ge=10, le=60_000)] = 500
    max_message_bytes: Annotated[Whole, Field(ge=1, le=64 << 20)] = MAX_MESSAGE_BYTES
    # The limits of one turn.
    max_steps: Natural = Budgets().max_steps
    max_tool_calls: Natural = Budgets().max_tool_calls
    max_duration_ms: Natural = Budgets().max_duration_ms
    max_tokens_per_turn: Natural = Budgets().max_tokens_per_turn
    # The number of turns that may run in one session at the same time.
    max_open_continuations_per_session: Annotated[Whole, Field(ge=1, le=MAX_OPEN_TURNS)] = 1
    # How long data is kept. None means that a transcript is kept until the user deletes it.
    session_idle_days: Days = Retention().session_idle_days
    continuation_retention_hours: Hours = Retention().continuation_retention_hours
    transcript_retention_days: Days | None = None
    # Let agents change the home; None means yes in the demo home, where nothing real can happen.
    allow_actuation: bool | None = None
    # The services that agents may use: light, switch.turn_off, … In the demo home the default is all.
    allowlisted_services: Names | None = None
    # Services that are refused, in addition to the built-in list. `!mqtt` removes mqtt from that list.
    denylisted_services: Denied = ()
    # Services that need approval.
    require_confirmation: Names = CONFIRM
    # Only report what an action would do.
    dry_run: bool = False
    max_actions_per_minute: Natural = SessionPolicy().max_actions_per_minute or 0
    # The callers that may approve an action: those with the scope `act`, or all callers of the owner.
    approvers: Approvers = "act"
    # Answer with the model of the session only.
    enforce_fixed_model: bool = False
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
    def is_demo(self) -> bool:
        """Return True if the home is the demo home."""
        return self.home_url is None and self.home == "demo"

    @property
    def may_act(self) -> bool:
        """Return True if agents may change the home."""
        return self.is_demo if self.allow_actuation is None else self.allow_actuation

    @property
    def allowlist(self) -> tuple[str, ...]:
        """The services that agents may use."""
        if self.allowlisted_services is None:
            return ("*",) if self.is_demo else ()
        return self.allowlisted_services

    @property
    def persona(self) -> str | None:
        """The text of `system_prompt`, or of its file. Raise `ValueError` if it cannot be used."""
        return None if self.system_prompt is None else _read_prompt(self.system_prompt)

    @property
    def in_force(self) -> dict[str, Any]:
        """The values in force of those settings whose default depends on other settings."""
        return {
            "data": self.folder,
            "allow_actuation": self.may_act,
            "allowlisted_services": self.allowlist,
            "denylisted_services": self.denylist,
        }

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
        return self.data or xdg_folder(os.environ, "XDG_DATA_HOME", ".local/share")


def is_loopback(host: str) -> bool:
    """Return True if only this machine can reach the address."""
    try:
        return host in LOOPBACK or ip_address(host).is_loopback
    except ValueError:
        return False


def xdg_folder(environ: Mapping[str, str], variable: str, default: str) -> Path:
    """Return Sash's folder in the base folder that an XDG variable names, or in the default one."""
    base = environ.get(variable)
    return (Path(base) if base else Path.home() / default) / "sash"
