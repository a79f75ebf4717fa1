"""Builds a runtime from the settings. Parts that the settings do not use are not imported."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from sash.app.settings import Settings
from sash.engine.event_hub import PARTIAL_INTERVAL_S
from sash.engine.runtime import Runtime
from sash.engine.worker import ContinuationResult
from sash.errors import InvalidConfig
from sash.ports.home import Home
from sash.ports.model import Model
from sash.ports.store import Store
from sash.values.clock import Clock, SystemClock
from sash.values.sessions import Budgets, Defaults, SessionPolicy, WindowLimits

TOKENS_FILE = "tokens.json"


def make_runtime(
    settings: Settings,
    *,
    on_turn: Callable[[ContinuationResult], None] | None = None,
    clock: Clock | None = None,
    partial_interval_s: float = PARTIAL_INTERVAL_S,
) -> Runtime:
    """Return a closed runtime with the store, the model and the home of the settings."""
    clock = clock or SystemClock()
    home = make_home(settings, clock)
    vocabulary = None
    if home is not None and settings.vocabulary is not None:
        from sash.intents.vocabulary import Vocabulary

        vocabulary = Vocabulary.load(settings.vocabulary)
    return Runtime(
        make_store(settings, clock),
        make_model(settings),
        home=home,
        vocabulary=vocabulary,
        summaries=settings.summaries,
        defaults=make_defaults(settings),
        on_turn=on_turn,
        clock=clock,
        partial_interval_s=partial_interval_s,
    )


def make_store(settings: Settings, clock: Clock) -> Store:
    """Return the store of the settings. Raise InvalidConfig for an unknown kind."""
    if settings.store == "memory":
        from sash.stores.memory import MemoryStore

        return MemoryStore(clock=clock)
    folder = _create_folder(settings.folder)
    if settings.store == "sqlite":
        from sash.stores.sqlite.store import SqliteStore

        return SqliteStore(folder / "sash.db", clock=clock)
    if settings.store == "files":
        from sash.stores.files.store import FilesStore

        return FilesStore(folder, clock=clock)
    raise InvalidConfig(
        f"store is sqlite, files or memory, not {settings.store.split('@')[-1]!r:.80}", option="store"
    )


def make_model(settings: Settings) -> Model | None:
    """Return the model of the settings, or None for the offline model."""
    if settings.model is None:
        return None
    try:
        from sash.models.openai.endpoint import Endpoint
        from sash.models.openai.model import openai_model
    except ImportError as error:
        raise InvalidConfig(
            f"a model needs more packages: pip install 'sash[openai]' ({error})", option="model"
        ) from error
    endpoint = Endpoint(
        settings.model,
        api_key=settings.api_key or "",
        base_url=settings.api_base,
        azure_endpoint=settings.azure_endpoint,
        api_version=settings.api_version,
    )
    return openai_model(endpoint, settings.api_mode)


def make_home(settings: Settings, clock: Clock) -> Home | None:
    """Return the home of the settings, or None."""
    if settings.home_url is None and settings.home == "none":
        return None
    try:
        if settings.home_url is None:
            from sash.demo.demo_home import demo_home

            return demo_home(clock)
        from sash.home.remote import RemoteHome
    except ImportError as error:
        raise InvalidConfig(
            f"a house needs more packages: pip install 'sash[home]' ({error}), or set home to none",
            option="home",
        ) from error
    return RemoteHome(settings.home_url, settings.home_token or "")


def make_defaults(settings: Settings) -> Defaults:
    """Return the defaults of new sessions: budgets, policy, window and the maximum number per owner."""
    policy = SessionPolicy(
        allow_actuation=settings.allow_actuation,
        allowlisted_services=settings.allowlisted_services,
        denylisted_services=settings.denylisted_services,
        require_confirmation=settings.require_confirmation,
        dry_run=settings.dry_run,
        resume_interrupted=settings.resume_interrupted,
    )
    budgets = Budgets(
        max_cost_per_turn_usd=settings.max_cost_per_turn_usd,
        max_cost_per_day_usd=settings.max_cost_per_day_usd,
    )
    limits = (settings.sliding_window_max_tokens, settings.max_history_turns)
    window = None
    if limits != (None, None):
        window = replace(WindowLimits(), max_tokens=limits[0], max_turns=limits[1])
    return Defaults(budgets, policy, window, settings.max_sessions)


def _create_folder(folder: Path) -> Path:
    """Create the folder with access for its user only."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidConfig(
            f"{folder} cannot be created ({error.strerror}): choose another folder with --data or SASH_DATA",
            option="data",
        ) from error
    return folder
