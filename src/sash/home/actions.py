"""Doing something in the house: the order is checked, given, and what came of it is read back."""

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from sash.errors import HomeError, HomeUnavailable, OutcomeUnknown, ServiceFailed
from sash.home.effects import Effect, effect, repeatable
from sash.home.live import LiveHome
from sash.home.restore import Kept
from sash.home.service_call import ServiceCall, read_order
from sash.ports.home import Entity, State
from sash.ports.tools import ActionOutcome, ServiceUse, ToolContext

# How long the house is given to show that something has worked.
READ_BACK_S = 3.0
MANY = 20
MAX_SHOWN = 40
# How long a house is waited for that has to say what became of a call.
COMES_BACK_S = 20.0

States = dict[str, State | None]


@dataclass(frozen=True, slots=True)
class Done:
    """What came of an order: what was so, what is so, and whether it has worked (None: nobody can see it).

    `failed` is what the house has complained of, although something has changed.
    """

    before: States
    after: States
    verified: bool | None
    failed: str = ""

    def then(self, later: "Done") -> "Done":
        """Add what came next: it is as sure as the less sure of both."""
        both = (self.verified, later.verified)
        verified = False if False in both else None if None in both else True
        return Done(
            later.before | self.before, self.after | later.after, verified, self.failed or later.failed
        )

    def shown(self, entities: Iterable[Entity]) -> list[dict[str, str]]:
        """Say what has changed, entity by entity, of many of them the first."""
        return [
            {"entity_id": entity.id, "name": entity.name}
            | ({"before": _said(self.before[entity.id])} if entity.id in self.before else {})
            | ({"after": _said(self.after[entity.id])} if entity.id in self.after else {})
            for entity in list(entities)[:MAX_SHOWN]
        ]


class Actions:
    """Calls services; whether it may is for others to say."""

    def __init__(self, known: LiveHome, *, read_back_s: float | None = None) -> None:
        self.known = known
        self._read_back_s = READ_BACK_S if read_back_s is None else read_back_s

    async def uses(self, arguments: dict[str, Any], context: ToolContext) -> Iterable[ServiceUse]:
        """Say which services a call uses, for the policy; after a crash the house may not be there yet."""
        if context.under_way_since is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout(COMES_BACK_S):
                    await self.known.ready()
        return self._order(arguments).uses()

    async def preview(self, arguments: dict[str, Any], context: ToolContext) -> dict[str, Any]:
        """Say what a call would do."""
        order, index = self._order(arguments), self.known.index
        entities = [{"entity_id": e.id, "name": e.name, "now": index.state(e.id)} for e in order.entities]
        shown: dict[str, Any] = {"service": order.service, "data": order.data, "entities": entities}
        if order.members:
            known = sorted(index.entities[key].name for key in order.members if key in index.entities)
            others = len(order.members) - len(known)
            shown["acts_on"] = [*known, *([f"{others} others"] if others else [])]
        return shown | ({"calls": sorted(order.called)} if order.called else {})

    async def call(self, arguments: dict[str, Any], context: ToolContext) -> ActionOutcome:
        """Do it, and say what was so before and what is so now."""
        order = self._order(arguments)
        done = await self.carry_out(order)
        return ActionOutcome(_result(order, done), done.verified, _kept(done.before), _kept(done.after))

    async def verify(self, arguments: dict[str, Any], context: ToolContext) -> ActionOutcome | None:
        """Find out what became of a call that was under way when its process died.

        None if it has not been done and can be done again. If nobody can tell, or something has changed since
        it was planned, so that it may have been done and taken back, that is an error.
        """
        order = self._order(arguments)
        now = await self.states(order.entity_ids)
        effects = _effects(order, now)
        seen = {wanted.seen(now[key]) for key, wanted in effects.items()}
        if not now or effects.keys() != now.keys() or None in seen or not repeatable(order.service):
            raise ServiceFailed(f"nobody can tell whether {order.service} was done")
        if seen == {True}:
            return ActionOutcome(_result(order, Done({}, now, True)), True)
        since = context.under_way_since
        if since is not None and any(state.updated_at >= since for state in now.values() if state):
            raise ServiceFailed(f"something has changed since {order.service} was asked for")
        return None

    async def carry_out(self, order: ServiceCall) -> Done:
        """Give an order, wait a moment until the house shows that it has worked, and read the states back."""
        before = await self.states(order.entity_ids)
        effects = _effects(order, before)
        try:
            await self.known.home.call(order.service, order.data, order.entity_ids)
        except HomeUnavailable as error:
            raise OutcomeUnknown(f"nobody knows whether {order.service} was done: {error.message}") from error
        except ServiceFailed as error:
            return await self._failed(order, before, error)
        try:
            after = await self._read_back(order, effects, before)
        except HomeError:
            return Done(before, {}, None)
        seen = {wanted.seen(after[key], before[key]) for key, wanted in effects.items()}
        if False in seen:
            return Done(before, after, False)
        sure = seen == {True} and effects.keys() == after.keys()
        return Done(before, after, True if sure else None)

    async def _failed(self, order: ServiceCall, before: States, error: ServiceFailed) -> Done:
        """Find out whether a call that has failed has done a part of it; if not, it has just failed."""
        try:
            after = await self.states(order.entity_ids)
        except HomeError as lost:
            raise OutcomeUnknown(f"{error.message}; what came of it is not known: {lost.message}") from lost
        if _kept(after) == _kept(before):
            raise error
        return Done(before, after, False, error.message)

    async def states(self, entity_ids: Iterable[str]) -> States:
        """Ask the house for states anew, all at once; of many, what it has told last."""
        wanted = tuple(entity_ids)
        if len(wanted) > MANY:
            told = {state.entity_id: state for state in await self.known.home.states()}
            return {entity_id: told.get(entity_id) for entity_id in wanted}
        states = await asyncio.gather(*(self.known.home.state(entity_id) for entity_id in wanted))
        return dict(zip(wanted, states, strict=True))

    def _order(self, arguments: dict[str, Any]) -> ServiceCall:
        return read_order(arguments, self.known.index, self.known.services)

    async def _read_back(self, order: ServiceCall, effects: dict[str, Effect], before: States) -> States:
        index = self.known.index

        def seen() -> bool:
            return all(wanted.seen(index.states.get(key), before[key]) for key, wanted in effects.items())

        if effects:
            await self.known.until(set(effects), seen, self._read_back_s)
        return await self.states(order.entity_ids)


def _result(order: ServiceCall, done: Done) -> dict[str, Any]:
    result: dict[str, Any] = {
        "service": order.service,
        "entities": done.shown(order.entities),
        "verified": done.verified,
    }
    if len(order.entities) > MAX_SHOWN:
        result["more"] = len(order.entities) - MAX_SHOWN
    if done.failed:
        result["note"] = f"only a part of it has worked, say so: {done.failed}"
    elif done.verified is False:
        result["note"] = "the call was made, but the house does not show that it has worked: say so"
    return result


def _effects(order: ServiceCall, before: States) -> dict[str, Effect]:
    """Return what is to be seen of an order, by entity; nothing of those that nobody can see."""
    found = {
        key: effect(order.service, order.data, state) for key, state in before.items() if state is not None
    }
    return {key: wanted for key, wanted in found.items() if wanted is not None}


def _kept(states: States) -> dict[str, Any]:
    return {key: Kept.of(state).to_dict() for key, state in states.items() if state is not None}


def _said(state: State | None) -> str:
    return "gone" if state is None else str(Kept.of(state))
