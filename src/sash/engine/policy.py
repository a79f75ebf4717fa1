"""Decides about actions: the denylist wins, all others need the allowlist, and some need an approval."""

import re
from collections import deque
from collections.abc import Iterable
from datetime import datetime, timedelta
from fnmatch import fnmatchcase
from typing import Literal, NamedTuple

from sash.ports.tools import ServiceUse
from sash.values.clock import Clock
from sash.values.sessions import SessionPolicy

MINUTE = timedelta(minutes=1)
# The places of a policy, for sentences that say how to change it.
_PLACES = {"session": "in the policy of this session", "server": "in the settings"}
_WILDCARD = re.compile(r"[*?\[]")


class Verdict(NamedTuple):
    """The policy's decision about a call, and the reason."""

    what: Literal["allow", "deny", "confirm", "preview", "fail"]
    reason: str = ""


class ActionRateLimiter:
    """Limits the actions of an owner per minute. It stops an agent that repeats itself without end."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lately: dict[str, deque[datetime]] = {}

    def take(self, owner: str, limit: int | None) -> bool:
        """Count an action and return True, or return False if the owner's limit per minute is reached."""
        now, lately = self._clock.now(), self._lately.setdefault(owner, deque())
        while lately and now - lately[0] >= MINUTE:
            lately.popleft()
        if limit is not None and len(lately) >= limit:
            return False
        lately.append(now)
        return True


def judge(uses: Iterable[ServiceUse], policy: SessionPolicy, operator: SessionPolicy) -> Verdict:
    """Judge an action by all services that it uses; one denied service denies the action.

    The stricter of the session's and the operator's policy decides.
    """
    services = list(uses)
    # The operator's verdicts come first: a change of the session's policy would not help.
    verdicts = [_judge(service, within, operator, "server") for service, within in services]
    verdicts += [_judge(service, within, policy, "session") for service, within in services]
    is_dry = policy.dry_run or operator.dry_run
    for what in ("deny", "confirm"):
        for verdict in verdicts:
            if verdict.what == what:
                return Verdict("preview") if what == "confirm" and is_dry else verdict
    return Verdict("preview" if is_dry else "allow")


def covers(allowlist: tuple[str, ...], pattern: str) -> bool:
    """Return True if an allowlist allows every service that a pattern of another allowlist allows."""
    service = pattern if "." in pattern else f"{pattern}.*"
    return _matches(service, allowlist)


def find_entry(uses: Iterable[ServiceUse], policy: SessionPolicy) -> str | None:
    """Return the entry of the allowlist that allows the first service of an action, or None."""
    service = next((use.service for use in uses if not use.within), "")
    return next((entry for entry in policy.allowlisted_services if _matches(service, (entry,))), None)


def _judge(service: str, within: bool, policy: SessionPolicy, place: str) -> Verdict:
    if _may_match(service, policy.denylisted_services):
        return Verdict("deny", _describe(service, "is on the denylist", "some services are on the denylist"))
    if not policy.allow_actuation:
        return Verdict(
            "deny",
            f"I am not allowed to control devices. Turn on `allow_actuation` {_PLACES[place]} to let me.",
        )
    if not within and not _matches(service, policy.allowlisted_services):
        return Verdict(
            "deny",
            f"I am not allowed to use {service}. "
            f"Add it to `allowlisted_services` {_PLACES[place]} to let me.",
        )
    if _may_match(service, policy.require_confirmation):
        return Verdict("confirm", _describe(service, "needs an approval", "some services need an approval"))
    return Verdict("allow")


def _describe(service: str, known: str, unknown: str) -> str:
    """Return the reason of a verdict. `*` in a service stands for the part that cannot be told."""
    if "*" not in service:
        return f"{service} {known}"
    which = "services" if service == "*" else f"{service} services"
    return f"it cannot be told which {which} this calls, and {unknown}"


def _matches(service: str, patterns: tuple[str, ...]) -> bool:
    """Return True if a pattern is the service (`light.turn_on`), its domain (`light`) or a wildcard."""
    service = service.lower()
    domain = service.partition(".")[0]
    return any(
        pattern in (service, domain) or fnmatchcase(service, pattern) for pattern in map(str.lower, patterns)
    )


def _may_match(service: str, patterns: tuple[str, ...]) -> bool:
    """Return True if a pattern matches the service, or one that `*` at its end may stand for."""
    known, star, _ = service.lower().partition("*")
    if not star:
        return _matches(service, patterns)
    return any(known.startswith(fixed) or fixed.startswith(known) for fixed in map(_get_fixed_part, patterns))


def _get_fixed_part(pattern: str) -> str:
    """Return the text before the first wildcard of a pattern; for a domain, how its services begin."""
    fixed, *rest = _WILDCARD.split(pattern.lower(), maxsplit=1)
    return fixed if rest or "." in fixed else f"{fixed}."
