"""Taking the last action back, by what was recorded before it, unless somebody has changed it since."""

from collections.abc import Iterable
from typing import Any

from sash.errors import HomeError, InvalidInput
from sash.home.actions import Actions, Done
from sash.home.order import Order
from sash.home.restoring import KEPT, Kept, Restoring, restoring
from sash.steps import Action
from sash.tools import Acted, ToolContext


class Undo:
    """Undoes what `Actions` has done in a session: the last first, then the one before it."""

    def __init__(self, actions: Actions) -> None:
        self._actions = actions

    async def services(self, arguments: dict[str, Any], context: ToolContext) -> Iterable[str]:
        """Say which services it takes, for the policy."""
        _, orders = await self._find(context)
        return dict.fromkeys(order.service for order in orders)

    async def preview(self, arguments: dict[str, Any], context: ToolContext) -> dict[str, Any]:
        """Say which calls it would be."""
        _, orders = await self._find(context)
        return {"calls": [{"service": o.service, "entity_ids": o.entity_ids, "data": o.data} for o in orders]}

    async def invoke(self, arguments: dict[str, Any], context: ToolContext) -> Acted:
        """Bring back what was so before the last action."""
        key, orders = await self._find(context)
        done, failed = Done({}, {}, True), ""
        for order in orders:
            try:
                now = await self._actions.carry_out(order)
            except HomeError as error:
                if not done.before:
                    raise
                failed = error.message
                break
            sure = now.verified if done.verified else done.verified
            done = Done(now.before | done.before, done.after | now.after, sure)
        verified = False if failed else done.verified
        entities = done.shown({e.id: e for order in orders for e in order.entities}.values())
        result: dict[str, Any] = {"undone": key, "entities": entities, "verified": verified}
        if failed:
            result["note"] = f"only a part of it was undone: {failed}"
        return Acted(result, verified, undoes=key)

    async def _find(self, context: ToolContext) -> tuple[str, list[Order]]:
        """Find the last action that is not undone yet, and the orders that undo it."""
        undone: set[str] = set()
        async for key, action in context.past_actions():
            if action.undoes is not None:
                undone.add(action.undoes)
            elif action.outcome == "done" and key not in undone:
                return key, await self._orders(action)
        raise InvalidInput("there is nothing to undo in this session")

    async def _orders(self, action: Action) -> list[Order]:
        """Return what brings everything back that an action has changed, the same for several at once."""
        name = action.arguments.get("service", action.name)
        before = {key: Kept.from_dict(was) for key, was in action.before.items()}
        if not before or any(key.partition(".")[0] not in KEPT for key in before):
            raise InvalidInput(f"the last action was {name}, which cannot be undone")
        index = self._actions.known.index
        entities = {key: index.find(key) for key in before}
        calls: dict[str, tuple[Restoring, list[str]]] = {}
        for key, state in (await self._actions.states(before)).items():
            now = Kept.of(state) if state is not None else None
            left = action.after.get(key)
            if now is None or left is None or not Kept.from_dict(left).is_as(now):
                was = Kept.from_dict(left) if left else "unknown"
                raise InvalidInput(
                    f"{entities[key].name} has changed since: {name} left it {was}, and now it is "
                    f"{now or 'gone'}. Nothing was undone"
                )
            for call in restoring(key.partition(".")[0], before[key], now):
                calls.setdefault(repr(call), (call, []))[1].append(key)
        return [
            Order(call.service, tuple(entities[key] for key in keys), call.data)
            for call, keys in calls.values()
        ]
