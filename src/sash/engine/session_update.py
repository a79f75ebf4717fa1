"""Changes of a session by its owner: name, instructions, model, budgets, policy, window and preferences."""

from dataclasses import asdict, replace
from typing import Any, TypedDict, TypeVar

from sash.engine.ceiling import check_request, restrict
from sash.engine.notes import merge_preferences
from sash.engine.redaction import clean_label, redact
from sash.values.requests import UpdateSession
from sash.values.sessions import Budgets, ModelConfig, OperatorLimits, Session, SessionPolicy, WindowLimits

T = TypeVar("T", ModelConfig, Budgets, SessionPolicy, WindowLimits)


class SessionChanges(TypedDict, total=False):
    """The changes that `update_session` accepts. A dict changes only the fields that it names."""

    model: ModelConfig | dict[str, Any] | None
    budgets: Budgets | dict[str, Any] | None
    policy: SessionPolicy | dict[str, Any] | None
    window: WindowLimits | dict[str, Any] | None
    preferences: dict[str, Any] | None
    name: str | None
    instructions: str | None


def apply_update(session: Session, request: UpdateSession, operator: OperatorLimits) -> Session:
    """Return the session with the changes of a request, within the operator's limits.

    Raise `PolicyExceedsOperator` if the request asks for more. The caller checks the model.
    """
    policy = _change(session.policy, request.policy)
    budgets = Budgets(**request.budgets) if request.budgets is not None else None
    check_request(_asked_policy(policy, request.policy), budgets, operator)
    changed = replace(
        session,
        model=_change(session.model, request.model),
        budgets=_change(session.budgets, request.budgets),
        policy=policy,
        window=_change(session.window, request.window),
    )
    if request.policy is not None or request.budgets is not None:
        changed = restrict(changed, operator)
    if request.has_name:
        changed = replace(changed, name=request.name and clean_label("name", request.name))
    if request.has_instructions:
        changed = replace(changed, instructions=request.instructions and redact(request.instructions))
    if request.preferences is not None:
        preferences = merge_preferences(session.preferences, request.preferences)
        changed = replace(changed, preferences=preferences)
    return changed


def _asked_policy(policy: SessionPolicy, changes: dict[str, Any] | None) -> SessionPolicy | None:
    """Return the policy that a request asks for: its own fields, and defaults that the ceiling ignores.

    Actions and their allowlist belong together. The rest of the session may be older than the ceiling.
    """
    if changes is None:
        return None
    if changes.keys() & {"allow_actuation", "allowlisted_services"}:
        actions = {
            "allow_actuation": policy.allow_actuation,
            "allowlisted_services": policy.allowlisted_services,
        }
        changes = changes | actions
    return SessionPolicy(**changes)


def _change(value: T, changes: dict[str, Any] | None) -> T:
    return value if changes is None else type(value)(**(asdict(value) | changes))
