"""May this call be made? The denylist wins; actions must be on and allowlisted; some need a person's yes."""

from fnmatch import fnmatchcase
from typing import Any, Literal, NamedTuple

from sash.sessions import SessionPolicy
from sash.tools import ToolSpec


class Verdict(NamedTuple):
    """What the policy says to a call, and why."""

    what: Literal["allow", "deny", "confirm"]
    reason: str = ""


def judge(spec: ToolSpec, arguments: dict[str, Any], policy: SessionPolicy) -> Verdict:
    """Judge one call. A tool that only reads is always allowed."""
    if not spec.action:
        return Verdict("allow")
    service = spec.service(arguments) if spec.service else spec.name
    if _matches(service, policy.denylisted_services):
        return Verdict("deny", f"{service} is on the denylist")
    if not policy.allow_actuation:
        return Verdict("deny", "actions are off in this session (allow_actuation is false)")
    if not _matches(service, policy.allowlisted_services):
        return Verdict("deny", f"{service} is not on the allowlist")
    if _matches(service, policy.require_confirmation):
        return Verdict("confirm", f"{service} needs a yes")
    return Verdict("allow")


def _matches(service: str, patterns: tuple[str, ...]) -> bool:
    """A pattern is a service (`light.turn_on`), a domain (`lock`), or has wildcards (`light.*`)."""
    service = service.lower()
    domain = service.partition(".")[0]
    return any(
        pattern in (service, domain) or fnmatchcase(service, pattern) for pattern in map(str.lower, patterns)
    )
