"""The operator's limits as the ceiling of every session: of new ones, old ones, forks and imports."""

from dataclasses import fields, replace
from typing import Any, TypeVar

from sash.engine.policy import covers
from sash.errors import PolicyExceedsOperator
from sash.values.sessions import Budgets, OperatorLimits, Session, SessionPolicy

T = TypeVar("T", int, float)


def get_budgets(session: Session, operator: OperatorLimits | None) -> Budgets:
    """Return the budgets of the session, each at most as high as the operator's."""
    return session.budgets if operator is None else _take_least(session.budgets, operator.budgets)


def restrict(session: Session, operator: OperatorLimits | None) -> Session:
    """Return the session with the operator's restrictions in its policy and budgets."""
    if operator is None:
        return session
    policy = add_restrictions(session.policy, operator.policy)
    return replace(session, policy=policy, budgets=get_budgets(session, operator))


def add_restrictions(policy: SessionPolicy, operator: SessionPolicy) -> SessionPolicy:
    """Return a policy that denies and asks whenever one of both does. Its allowlist stays its own."""
    return replace(
        policy,
        allow_actuation=policy.allow_actuation and operator.allow_actuation,
        denylisted_services=_merge(operator.denylisted_services, policy.denylisted_services),
        require_confirmation=_merge(operator.require_confirmation, policy.require_confirmation),
        max_actions_per_minute=least(policy.max_actions_per_minute, operator.max_actions_per_minute),
        dry_run=policy.dry_run or operator.dry_run,
        enforce_fixed_model=policy.enforce_fixed_model or operator.enforce_fixed_model,
        grounded_answers=policy.grounded_answers or operator.grounded_answers,
    )


def check_wishes(
    policy: SessionPolicy | None, budgets: Budgets | None, operator: OperatorLimits | None
) -> None:
    """Raise `PolicyExceedsOperator` if a client asks for more than the operator allows."""
    if operator is None:
        return
    if policy is not None and policy.allow_actuation:
        _check_actions(policy, operator.policy)
    for limit in fields(Budgets) if budgets is not None else ():
        wish, ceiling = getattr(budgets, limit.name), getattr(operator.budgets, limit.name)
        if wish is not None and ceiling is not None and wish > ceiling:
            raise PolicyExceedsOperator(
                f"{limit.name} may be at most {ceiling:,} on this server, not {wish:,}: ask for less"
            )


def least(one: T | None, other: T | None) -> T | None:
    """Return the lower of two limits. None means no limit, and is returned only if both are None."""
    return min((limit for limit in (one, other) if limit is not None), default=None)


def _check_actions(policy: SessionPolicy, operator: SessionPolicy) -> None:
    if not operator.allow_actuation:
        raise PolicyExceedsOperator(
            "the operator of this server has turned actions off: leave allow_actuation out, or ask the "
            "operator to turn it on"
        )
    for service in policy.allowlisted_services:
        if not covers(operator.allowlisted_services, service):
            raise PolicyExceedsOperator(
                f"{service!r:.80} is not on the allowlist of this server: leave it out, or ask the operator "
                "to add it to allowlisted_services"
            )


def _take_least(budgets: Budgets, ceiling: Budgets) -> Budgets:
    names = [limit.name for limit in fields(Budgets)]
    lowest: dict[str, Any] = {name: least(getattr(budgets, name), getattr(ceiling, name)) for name in names}
    return Budgets(**lowest)


def _merge(one: tuple[str, ...], other: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*one, *other)))
