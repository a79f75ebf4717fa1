"""A caller as the caller sees itself: its rights, and the limits of the sessions that it starts."""

from contextlib import suppress
from dataclasses import dataclass
from typing import Self

from sash import __version__
from sash.app.access import SCOPES, Caller, Scope
from sash.engine.ceiling import add_restrictions, take_least
from sash.engine.runtime import Runtime
from sash.errors import HomeUnavailable
from sash.ports.model import complete_model
from sash.values.sessions import Budgets, ModelConfig, SessionPolicy, WindowLimits


@dataclass(frozen=True, slots=True)
class CallerShown:
    """The owner and the scopes of a caller, and the defaults of a session that the caller starts.

    `policy` and `budgets` are those in force: the defaults, within the operator's limits and the caller's
    scopes. `model` is null if the default model has no name. `home` is null without a home. `home_language`
    and `time_zone` are also null while the home is not connected. `early_wait_s` is the number of seconds
    after which a caller who waits for an answer is told that the turn still runs; null means no limit.
    `may_pin` tells if the caller may change the pins that all sessions of the owner have.
    """

    owner: str
    scopes: tuple[Scope, ...]
    version: str
    model: str | None
    home: str | None
    home_language: str | None
    time_zone: str | None
    policy: SessionPolicy
    budgets: Budgets
    window: WindowLimits
    early_wait_s: float | None
    may_pin: bool

    @classmethod
    def of(
        cls,
        caller: Caller,
        runtime: Runtime,
        policy: SessionPolicy,
        early_wait_s: float | None,
        may_pin: bool,
    ) -> Self:
        """Return a caller. `policy` is the default policy within the caller's scopes."""
        home, operator, language = runtime.home, runtime.operator, None
        with suppress(HomeUnavailable):
            language = home.index.language if home else None
        zone = home.time_zone if home else None
        return cls(
            owner=caller.owner,
            scopes=tuple(scope for scope in SCOPES if scope in caller.scopes),
            version=__version__,
            model=complete_model(runtime.model).name,
            home=home.home.name if home else None,
            home_language=language,
            time_zone=None if zone is None else str(zone),
            policy=add_restrictions(policy, operator.policy),
            budgets=take_least(runtime.defaults.budgets, operator.budgets),
            window=runtime.default_window(ModelConfig()),
            early_wait_s=early_wait_s,
            may_pin=may_pin,
        )
