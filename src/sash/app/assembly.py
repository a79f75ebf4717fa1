"""Builds a runtime from the settings. Parts that the settings do not use are not imported."""

from collections.abc import Callable
from dataclasses import replace

from sash.app.settings import Settings
from sash.engine.event_hub import PARTIAL_INTERVAL_S
from sash.engine.runtime import Runtime
from sash.engine.turn.continuation_result import ContinuationResult
from sash.errors import InvalidConfig
from sash.models.registry import create_model
from sash.ports.home import Home
from sash.stores.backend import StoreSettings
from sash.stores.registry import make_store
from sash.values.clock import Clock, SystemClock
from sash.values.sessions import Budgets, Defaults, OperatorLimits, SessionPolicy, WindowLimits

TOKENS_FILE = "tokens.json"


def make_runtime(
    settings: Settings,
    *,
    on_turn: Callable[[ContinuationResult], None] | None = None,
    clock: Clock | None = None,
    partial_interval_s: float = PARTIAL_INTERVAL_S,
    limits: OperatorLimits | None = None,
) -> Runtime:
    """Return a runtime that is not open yet, with the store, the model and the home of the settings.

    Without `limits`, no session passes the policy and the budgets of the settings.
    """
    clock = clock or SystemClock()
    home = make_home(settings, clock)
    vocabulary = None
    if home is not None and settings.vocabulary is not None:
        from sash.intents.vocabulary import Vocabulary

        vocabulary = Vocabulary.load(settings.vocabulary)
    return Runtime(
        make_store(make_store_settings(settings, clock)),
        create_model(settings),
        home=home,
        vocabulary=vocabulary,
        summaries=settings.summaries,
        allow_image_urls=settings.allow_image_urls,
        defaults=make_defaults(settings),
        operator=limits or make_limits(settings),
        on_turn=on_turn,
        clock=clock,
        partial_interval_s=partial_interval_s,
    )


def make_store_settings(settings: Settings, clock: Clock | None = None) -> StoreSettings:
    """Return those of the settings that a store needs."""
    return StoreSettings(settings.store, settings.folder, clock or SystemClock())


def make_home(settings: Settings, clock: Clock) -> Home | None:
    """Return the home of the settings, or None. Raise `InvalidConfig` if its packages are not installed."""
    if settings.home_url is None and settings.home == "none":
        return None
    try:
        if settings.home_url is None:
            from sash.demo.demo_home import demo_home

            return demo_home(clock)
        from sash.home.remote import RemoteHome
    except ImportError as error:
        raise InvalidConfig(
            f"the setting `home` needs more packages: pip install 'sash[home]' ({error}). Or set it to none",
            option="home",
        ) from error
    return RemoteHome(settings.home_url, settings.home_token or "")


def make_limits(settings: Settings) -> OperatorLimits:
    """Return the most that any session may do and spend."""
    defaults = make_defaults(settings)
    return OperatorLimits(defaults.policy, defaults.budgets)


def make_defaults(settings: Settings) -> Defaults:
    """Return the defaults of new sessions: budgets, policy, window, and the maximum of sessions per owner."""
    policy = SessionPolicy(
        allow_actuation=settings.allow_actuation,
        allowlisted_services=settings.allowlisted_services,
        denylisted_services=settings.denylist,
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
