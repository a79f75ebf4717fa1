"""Undoes the last action of a session, unless its entities have changed since."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from sash.errors import HomeError, InvalidInput
from sash.home.actions import CallOutcome, HomeActions, describe_now
from sash.home.index import HomeIndex
from sash.home.restore import RESTORABLE_ATTRIBUTES, RestoreCall, SavedState, plan_restore
from sash.home.service_call import ServiceCall
from sash.ports.home import NO_STATE
from sash.ports.tools import ActionOutcome, ServiceUse, ToolContext
from sash.values.continuations import Action

NOTHING_TO_UNDO = "there is nothing to undo in this session"
# A saved state of these domains is complete if the call has only arguments of `_SAVED_ARGUMENTS`.
_COMPLETE_DOMAINS = frozenset({*RESTORABLE_ATTRIBUTES, "lock", "alarm_control_panel"})
_SAVED_ARGUMENTS = frozenset(name for names in RESTORABLE_ATTRIBUTES.values() for name in names) | {
    "brightness_pct",
    "hs_color",
    "hvac_mode",
    "position",
    "transition",
}


def is_undo_done(action: Action) -> bool:
    """Return True if the action is an undo that was done."""
    return action.undoes is not None and action.outcome == "done" and action.verified is not False


def find_last_action(past: Iterable[tuple[str, Action]], index: HomeIndex) -> tuple[str, Action]:
    """Return the action that an undo reverses: the newest one that had an effect and is not undone.

    `past` has the actions of a session, newest first, each with the key of its tool call. Raise
    `InvalidInput` if there is no such action.
    """
    undone: set[str | None] = set()
    without_effect = ""
    for key, action in past:
        if is_undo_done(action):
            undone.add(action.undoes)
        elif action.undoes is not None or action.outcome not in ("done", "unknown") or key in undone:
            continue
        elif action.outcome == "unknown" or not _had_no_effect(action, index):
            return key, action
        else:
            without_effect = without_effect or f"{_name(action)} has changed nothing, and "
    raise InvalidInput(NOTHING_TO_UNDO if undone else f"{without_effect}{NOTHING_TO_UNDO}")


def count_effects(actions: Iterable[Action], index: HomeIndex) -> int:
    """Return how many of some actions had an effect, so that an undo reverses them one by one."""
    done = [each for each in actions if each.undoes is None and each.outcome in ("done", "unknown")]
    return sum(not _had_no_effect(action, index) for action in done)


def find_undoable(past: Iterable[tuple[str, Action]], index: HomeIndex) -> str | None:
    """Return the key of the action that an undo reverses, or None if the undo would fail.

    An action with an unknown outcome counts as one that cannot be reversed. Present states are not read.
    """
    try:
        key, action = find_last_action(past, index)
        is_known = all(entity_id in index.entities for entity_id in list_changed(action))
    except InvalidInput:
        return None
    return key if is_known and action.outcome == "done" else None


def list_changed(action: Action) -> list[str]:
    """Return the entities that an action has changed.

    Raise `InvalidInput` if one of them cannot be restored.
    """
    name, before, after = _name(action), _read_states(action.before), _read_states(action.after)
    changed = [key for key in before if key in after and not before[key].is_same(after[key])]
    if not changed or any(key.partition(".")[0] not in RESTORABLE_ATTRIBUTES for key in changed):
        raise InvalidInput(f"the last action was {name}, which cannot be undone")
    if lost := [key for key in changed if before[key].state in NO_STATE]:
        raise InvalidInput(f"the state of {', '.join(lost)} before {name} is unknown: nothing was undone")
    return changed


class ActionUndo:
    """Undoes the actions of a session, the newest one first."""

    def __init__(self, actions: HomeActions) -> None:
        self._actions = actions

    async def list_uses(self, arguments: dict[str, Any], context: ToolContext) -> Iterable[ServiceUse]:
        """Return the services of the undo, which the policy must check."""
        _, calls = await self._plan(context)
        return [use for call in calls for use in call.list_uses()]

    async def preview(self, arguments: dict[str, Any], context: ToolContext) -> dict[str, Any]:
        """Describe the calls of the undo without making them."""
        _, calls = await self._plan(context)
        index = self._actions.live_home.index
        return {
            "calls": [
                {
                    "service": call.service,
                    "data": call.data,
                    "entities": [{"name": e.name, **describe_now(index, e)} for e in call.entities],
                }
                for call in calls
            ]
        }

    async def invoke(self, arguments: dict[str, Any], context: ToolContext) -> ActionOutcome:
        """Restore the states from before the last action.

        Raise `InvalidInput` if there is no such action, or it cannot be undone.
        """
        action_key, calls = await self._plan(context)
        context.on_cut_off(lambda: ActionOutcome(None, undoes=action_key))
        context_of_calls = replace(context, on_cut_off=lambda observe: None)
        outcome = CallOutcome({}, {}, True)
        for call in calls:
            try:
                outcome = outcome.merge(await self._actions.execute(call, context_of_calls))
            except HomeError as error:
                if not outcome.before:
                    raise
                outcome = outcome.merge(CallOutcome({}, {}, False, error.message))
                break
        entities = outcome.describe_entities({e.id: e for call in calls for e in call.entities}.values())
        result: dict[str, Any] = {"undone": action_key, "entities": entities, "verified": outcome.verified}
        if outcome.error:
            result["note"] = f"only a part of the action was undone: {outcome.error}"
        return ActionOutcome(result, outcome.verified, undoes=action_key)

    async def _plan(self, context: ToolContext) -> tuple[str, list[ServiceCall]]:
        """Return the key of the last action that had an effect and is not undone, and the calls to undo it.

        Raise `InvalidInput` if there is no such action, or it is unknown whether it was done.
        """
        past = [each async for each in context.past_actions()]
        key, action = find_last_action(past, self._actions.live_home.index)
        return key, await self._plan_calls(
            await self._find_effect(action) if action.outcome == "unknown" else action
        )

    async def _find_effect(self, action: Action) -> Action:
        """Return an action whose outcome is unknown with the states that it seems to have caused.

        Raise `InvalidInput` if the home does not show that it was done.
        """
        after = await self._actions.read_possible_effect(action) if action.before else {}
        before = _read_states(action.before)
        if all(before[key].is_same(state) for key, state in _read_states(after).items()):
            raise InvalidInput(f"it is unknown whether the last action, {_name(action)}, was done")
        return replace(action, after=after)

    async def _plan_calls(self, action: Action) -> list[ServiceCall]:
        """Return the calls that restore the states from before an action. Equal calls are combined.

        Raise `InvalidInput` if a state cannot be restored, or has changed since the action.
        """
        changed = list_changed(action)
        before, after = _read_states(action.before), _read_states(action.after)
        index = self._actions.live_home.index
        entities = {key: index.find(key) for key in changed}
        calls: dict[str, tuple[RestoreCall, list[str]]] = {}
        for key, state in (await self._actions.read_states(changed)).items():
            now = SavedState.from_state(state) if state is not None else None
            if now is None or not after[key].is_unchanged_in(now):
                raise InvalidInput(
                    f"{entities[key].name} has changed since the action {_name(action)}: "
                    f"it was {after[key]}, and now it is {now or 'gone'}. Nothing was undone"
                )
            for call in plan_restore(key.partition(".")[0], before[key], now):
                calls.setdefault(repr(call), (call, []))[1].append(key)
        return [
            ServiceCall(call.service, tuple(entities[key] for key in keys), call.data)
            for call, keys in calls.values()
        ]


def _name(action: Action) -> str:
    return str(action.arguments.get("service", action.name))


def _had_no_effect(action: Action, index: HomeIndex) -> bool:
    """Return True only if the saved states prove that the action changed nothing."""
    before, after = _read_states(action.before), _read_states(action.after)
    is_verified = action.verified is True and len(before) > 0 and before.keys() == after.keys()
    is_complete = all(
        key.partition(".")[0] in _COMPLETE_DOMAINS and not index.list_contents(key)[0] for key in before
    )
    has_other_arguments = not _SAVED_ARGUMENTS.issuperset(action.arguments.get("data") or ())
    if not is_verified or not is_complete or has_other_arguments:
        return False
    return all(state.is_same(after[key]) for key, state in before.items())


def _read_states(saved: dict[str, Any]) -> dict[str, SavedState]:
    return {key: SavedState.from_dict(state) for key, state in saved.items()}
