"""The operator's limits as the ceiling of every session: of new ones, old ones, forks and imports."""

from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

from sash.engine.fixed_model import keep_fixed_model
from sash.engine.policy import covers
from sash.errors import PolicyExceedsOperator
from sash.values.continuations import ContinuationRequest
from sash.values.sessions import Budgets, ModelConfig, OperatorLimits, Session, SessionPolicy

T = TypeVar("T", int, float)


@dataclass(frozen=True, slots=True)
class LimitsInForce:
    """The limits in force: those of a session, restricted by the operator. `model` may be fixed."""

    budgets: Budgets
    policy: SessionPolicy
    model: ModelConfig


def find_limits(
    session: Session, operator: OperatorLimits, request: ContinuationRequest | None = None
) -> LimitsInForce:
    """Return the limits in force for the work of a session, or for one turn with its request.

    The session and the turn may be older than the operator's decision. A request may ask for less than the
    budgets, not for more. Fields of the model that it leaves out come from the session.
    """
    policy, config = add_restrictions(session.policy, operator.policy), session.model
    budgets = take_least(session.budgets, operator.budgets)
    if operator.policy.enforce_fixed_model:
        config = keep_fixed_model(config)
    if request is None:
        return LimitsInForce(budgets, policy, config)
    for name, limit in (("max_steps", request.max_steps), ("max_duration_ms", request.time_budget_ms)):
        if limit is not None:
            lower: dict[str, Any] = {name: min(limit, getattr(budgets, name))}
            budgets = replace(budgets, **lower)
    if request.model is not None:
        asked = keep_fixed_model(request.model) if policy.enforce_fixed_model else request.model
        config = _merge_models(config, asked)
    return LimitsInForce(budgets, policy, config)


def restrict(session: Session, operator: OperatorLimits) -> Session:
    """Return the session with the operator's restrictions in its policy and budgets."""
    limits = find_limits(session, operator)
    return replace(session, policy=limits.policy, budgets=limits.budgets)


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
        approvers="act" if "act" in (policy.approvers, operator.approvers) else "owner",
    )


def check_request(policy: SessionPolicy | None, budgets: Budgets | None, operator: OperatorLimits) -> None:
    """Raise `PolicyExceedsOperator` if a client asks for more than the operator allows.

    A field with its default value counts as left out: it is lowered to the operator's limit instead. Lists of
    services to refuse or to confirm are added to the operator's, so only an empty list asks for more.
    """
    if policy is not None:
        if policy.allow_actuation:
            _check_actions(policy, operator.policy)
        _check_limit("max_actions_per_minute", policy, operator.policy)
        for name in ("denylisted_services", "require_confirmation", "grounded_answers"):
            if getattr(operator.policy, name) and not getattr(policy, name):
                raise PolicyExceedsOperator(f"{name} may not be empty or off on this server: leave it out")
        if policy.approvers == "owner" and operator.policy.approvers != "owner":
            raise PolicyExceedsOperator(
                "approvers may not be 'owner' on this server: only callers with the scope 'act' may approve"
            )
    if budgets is not None:
        for limit in fields(Budgets):
            _check_limit(limit.name, budgets, operator.budgets)


def least(one: T | None, other: T | None) -> T | None:
    """Return the lower of two limits. None means no limit, and is returned only if both are None."""
    return min((limit for limit in (one, other) if limit is not None), default=None)


def take_least(budgets: Budgets, ceiling: Budgets) -> Budgets:
    """Return the lower of two limits for each limit of the budgets."""
    names = [limit.name for limit in fields(Budgets)]
    lowest: dict[str, Any] = {name: least(getattr(budgets, name), getattr(ceiling, name)) for name in names}
    return Budgets(**lowest)


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


def _check_limit(name: str, asked: SessionPolicy | Budgets, operator: SessionPolicy | Budgets) -> None:
    limit, maximum = getattr(asked, name), getattr(operator, name)
    if limit == getattr(type(asked)(), name) or maximum is None:
        return
    if limit is None or limit > maximum:
        given = "null, which means no limit" if limit is None else f"{limit:,}"
        raise PolicyExceedsOperator(
            f"{name} may be at most {maximum:,} on this server, not {given}: ask for less"
        )


def _merge_models(config: ModelConfig, asked: ModelConfig) -> ModelConfig:
    return ModelConfig(
        asked.name or config.name,
        config.temperature if asked.temperature is None else asked.temperature,
        config.max_output_tokens if asked.max_output_tokens is None else asked.max_output_tokens,
        config.options | asked.options,
    )


def _merge(one: tuple[str, ...], other: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*one, *other)))
