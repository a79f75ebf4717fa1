"""Taking the last action back, by what was recorded before it, unless somebody has changed it since."""

from collections.abc import Iterable
from typing import Any

from sash.errors import HomeError, InvalidInput
from sash.home.actions import Actions, Done
from sash.home.restore import KEPT, Kept, RestoreCall, restoring
from sash.home.service_call import ServiceCall
from sash.ports.home import NO_STATE
from sash.ports.tools import ActionOutcome, ServiceUse, ToolContext
from sash.values.continuations import Action

NOTHING = "there is nothing to undo in this session"
# Of these everything is kept that a service can change, if it takes nothing else than is kept.
_WHOLE = frozenset({*KEPT, "lock", "alarm_control_panel"})
_KEPT_ARGUMENTS = frozenset(name for names in KEPT.values() for name in names) | {
    "brightness_pct",
    "hs_color",
    "hvac_mode",
    "position",
    "transition",
}


class Undo:
    """Undoes what `Actions` has done in a session: the last first, then the one before it."""

    def __init__(self, actions: Actions) -> None:
        self._actions = actions

    async def uses(self, arguments: dict[str, Any], context: ToolContext) -> Iterable[ServiceUse]:
        """Say which services it takes, for the policy."""
        _, orders = await self._find(context)
        return [use for order in orders for use in order.uses()]

    async def preview(self, arguments: dict[str, Any], context: ToolContext) -> dict[str, Any]:
        """Say which calls it would be."""
        _, orders = await self._find(context)
        index = self._actions.known.index
        return {
            "calls": [
                {
                    "service": order.service,
                    "data": order.data,
                    "entities": [{"name": e.name, "now": index.state(e.id)} for e in order.entities],
                }
                for order in orders
            ]
        }

    async def invoke(self, arguments: dict[str, Any], context: ToolContext) -> ActionOutcome:
        """Bring back what was so before the last action."""
        key, orders = await self._find(context)
        done = Done({}, {}, True)
        for order in orders:
            try:
                done = done.then(await self._actions.carry_out(order))
            except HomeError as error:
                if not done.before:
                    raise
                done = done.then(Done({}, {}, False, error.message))
                break
        entities = done.shown({e.id: e for order in orders for e in order.entities}.values())
        result: dict[str, Any] = {"undone": key, "entities": entities, "verified": done.verified}
        if done.failed:
            result["note"] = f"only a part of it was undone: {done.failed}"
        return ActionOutcome(result, done.verified, undoes=key)

    async def _find(self, context: ToolContext) -> tuple[str, list[ServiceCall]]:
        """Find the last action that is not undone yet and has changed something, and what undoes it."""
        undone: set[str] = set()
        idle = ""
        async for key, action in context.past_actions():
            if action.undoes is not None:
                undone |= {action.undoes} if action.verified is not False else set()
            elif action.outcome == "unknown" and key not in undone:
                raise InvalidInput(f"nobody knows whether the last action, {_name(action)}, was done")
            elif action.outcome == "done" and key not in undone:
                if not self._was_so_before(action):
                    return key, await self._orders(action)
                idle = idle or f"{_name(action)} has changed nothing, and "
        raise InvalidInput(NOTHING if undone else f"{idle}{NOTHING}")

    def _was_so_before(self, action: Action) -> bool:
        """Whether all that an action was for was so already; what is within a group may not have been."""
        before, after, inside = action.before, action.after, self._actions.known.index.inside
        is_seen = action.verified is True and len(before) > 0 and before.keys() == after.keys()
        is_whole = all(key.partition(".")[0] in _WHOLE and not inside(key)[0] for key in before)
        if not is_seen or not is_whole or not _KEPT_ARGUMENTS.issuperset(action.arguments.get("data") or ()):
            return False
        return all(Kept.from_dict(was).is_same(Kept.from_dict(after[key])) for key, was in before.items())

    async def _orders(self, action: Action) -> list[ServiceCall]:
        """Return what brings everything back that an action has changed, the same for several at once."""
        name = _name(action)
        before = {key: Kept.from_dict(was) for key, was in action.before.items()}
        after = {key: Kept.from_dict(left) for key, left in action.after.items()}
        changed = [key for key in before if key in after and not before[key].is_same(after[key])]
        if not changed or any(key.partition(".")[0] not in KEPT for key in changed):
            raise InvalidInput(f"the last action was {name}, which cannot be undone")
        if lost := [key for key in changed if before[key].state in NO_STATE]:
            raise InvalidInput(f"nobody knows what {', '.join(lost)} was before {name}: nothing was undone")
        index = self._actions.known.index
        entities = {key: index.find(key) for key in changed}
        calls: dict[str, tuple[RestoreCall, list[str]]] = {}
        for key, state in (await self._actions.states(changed)).items():
            now = Kept.of(state) if state is not None else None
            if now is None or not after[key].is_as(now):
                raise InvalidInput(
                    f"{entities[key].name} has changed since: {name} left it {after[key]}, and now it is "
                    f"{now or 'gone'}. Nothing was undone"
                )
            for call in restoring(key.partition(".")[0], before[key], now):
                calls.setdefault(repr(call), (call, []))[1].append(key)
        return [
            ServiceCall(call.service, tuple(entities[key] for key in keys), call.data)
            for call, keys in calls.values()
        ]


def _name(action: Action) -> str:
    return str(action.arguments.get("service", action.name))
