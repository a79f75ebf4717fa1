"""The policy in force as sentences for the model, at the end of the description of `call_service`."""

from sash.engine.ceiling import add_restrictions
from sash.engine.policy import covers
from sash.values.sessions import DENYLIST, SessionPolicy

MAX_NAMED = 20
_ALL = "*"


def describe_policy(policy: SessionPolicy, operator: SessionPolicy) -> str:
    """Return what a session may call, what needs an approval and what is refused."""
    in_force = add_restrictions(policy, operator)
    if not in_force.allow_actuation:
        return "Controlling devices is turned off for you: do not call this, and tell the user."
    allowed = _intersect(policy.allowlisted_services, operator.allowlisted_services)
    if not allowed:
        return "No service is allowed: do not call this, and tell the user."
    refused = [name for name in in_force.denylisted_services if name not in DENYLIST]
    lines = [f"Allowed: {'all services' if _ALL in allowed else _name(allowed)}."]
    if refused:
        lines.append(f"Refused: {_name(refused)}.")
    if in_force.require_confirmation:
        lines.append(
            f"The user is asked to approve: {_name(in_force.require_confirmation)}. Call it at once, because "
            "Sash asks."
        )
    if in_force.dry_run:
        lines.append("This is a dry run: nothing is really changed.")
    return " ".join(lines)


def _intersect(one: tuple[str, ...], other: tuple[str, ...]) -> list[str]:
    """Return the patterns of two allowlists that the other one also allows."""
    both = [pattern for pattern in one if covers(other, pattern)]
    return list(dict.fromkeys([*both, *(pattern for pattern in other if covers(one, pattern))]))


def _name(patterns: list[str] | tuple[str, ...]) -> str:
    """Return patterns as a text, `light.*` as `light`. At most `MAX_NAMED` are named."""
    names = list(dict.fromkeys(pattern.removesuffix(".*") for pattern in patterns))
    more = len(names) - MAX_NAMED
    return ", ".join(names[:MAX_NAMED]) + (f" and {more} more" if more > 0 else "")
