"""Builds a runtime from the settings. Parts that the settings do not use are not imported."""

from collections.abc import Callable
from dataclasses import replace

from sash.app.settings import Settings
from sash.engine.context import RULES
from sash.engine.runtime import Runtime
from sash.engine.turn.continuation_result import ContinuationResult
from sash.errors import InvalidConfig
from sash.models.registry import create_model
from sash.ports.embedder import Embedder
from sash.ports.home import Home
from sash.stores.backend import StoreSettings
from sash.stores.registry import make_store
from sash.values.clock import Clock, SystemClock
from sash.values.sessions import (
    Budgets,
    Defaults,
    OperatorLimits,
    Retention,
    SessionPolicy,
    WindowLimits,
)

TOKENS_FILE = "tokens.json"


def make_runtime(
    settings: Settings,
    *,
    on_turn: Callable[[ContinuationResult], None] | None = None,
    clock: Clock | None = None,
    partial_interval_s: float | None = None,
    limits: OperatorLimits | None = None,
) -> Runtime:
    """Return a runtime that is not open yet, with the store, the model and the home of the settings.

    Without `limits`, no session passes the policy and the budgets of the settings. `partial_interval_s`
    replaces the setting.
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
        embedder=make_embedder(settings),
        system_prompt=None if settings.persona is None else f"{settings.persona}\n{RULES}",
        summaries=settings.summaries,
        fact_extraction=settings.fact_extraction,
        summary_tokens=settings.summary_tokens,
        retention=Retention(
            settings.session_idle_days,
            settings.continuation_retention_hours,
            settings.transcript_retention_days,
        ),
        max_message_bytes=settings.max_message_bytes,
        max_open_turns=settings.max_open_continuations_per_session,
        allow_image_urls=settings.allow_image_urls,
        defaults=make_defaults(settings),
        operator=limits or make_limits(settings),
        on_turn=on_turn,
        clock=clock,
        partial_interval_s=settings.partial_update_interval_ms / 1000
        if partial_interval_s is None
        else partial_interval_s,
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
        allow_actuation=settings.may_act,
        allowlisted_services=settings.allowlist,
        denylisted_services=settings.denylist,
        require_confirmation=settings.require_confirmation,
        max_actions_per_minute=settings.max_actions_per_minute,
        dry_run=settings.dry_run,
        enforce_fixed_model=settings.enforce_fixed_model,
        resume_interrupted=settings.resume_interrupted,
        approvers=settings.approvers,
    )
    budgets = Budgets(
        max_steps=settings.max_steps,
        max_tool_calls=settings.max_tool_calls,
        max_duration_ms=settings.max_duration_ms,
        max_tokens_per_turn=settings.max_tokens_per_turn,
        max_cost_per_turn_usd=settings.max_cost_per_turn_usd,
        max_cost_per_day_usd=settings.max_cost_per_day_usd,
    )
    return Defaults(
        budgets,
        policy,
        _make_window(settings),
        settings.max_sessions,
        settings.last_k,
        settings.sliding_window_preserve_system,
    )


def _make_window(settings: Settings) -> WindowLimits | None:
    """Return the window of new sessions, or None if it depends on the model."""
    window = WindowLimits(
        max_turns=settings.max_history_turns, preserve_system=settings.sliding_window_preserve_system
    )
    if not settings.sliding_window_enable:
        return replace(window, max_tokens=None, max_turns=None)
    if settings.sliding_window_max_tokens is not None:
        return replace(window, max_tokens=settings.sliding_window_max_tokens)
    # A limit by turns replaces the limit by tokens that depends on the model.
    return replace(window, max_tokens=None) if settings.max_history_turns else None


def make_embedder(settings: Settings) -> Embedder | None:
    """Return the embedder of the settings, or None. Raise `InvalidConfig` if packages are not installed."""
    if settings.embedder_model is None:
        return None
    try:
        from sash.models.openai.embedder import OpenAIEmbedder
    except ImportError as error:
        raise InvalidConfig(
            f"embedder_model needs more packages: pip install 'sash[openai]' ({error})",
            option="embedder_model",
        ) from error
    dimensions = settings.embedder_dimensions or None
    if settings.embedder_api_base is not None:  # The key of the model is not sent to another server.
        return OpenAIEmbedder(
            settings.embedder_model,
            dimensions=dimensions,
            api_key=settings.embedder_api_key or "",
            base_url=settings.embedder_api_base,
        )
    return OpenAIEmbedder(
        settings.embedder_model,
        dimensions=dimensions,
        api_key=settings.embedder_api_key or settings.api_key or "",
        base_url=settings.api_base,
        azure_endpoint=settings.azure_endpoint,
        api_version=settings.api_version,
    )
