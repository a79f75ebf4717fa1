"""Calls services in the home and reads the states back to verify the result."""

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sash.errors import HomeError, HomeUnavailable, InvalidInput, OutcomeUnknown, ServiceFailed
from sash.home.expected_effects import (
    ExpectedEffect,
    find_expected_effect,
    is_already_so,
    is_repeatable,
)
from sash.home.index import HomeIndex
from sash.home.live_home import LiveHome
from sash.home.restore import SavedState
from sash.home.service_call import ServiceCall, parse_service_call
from sash.home.state_text import TIMESTAMP_DOMAINS
from sash.ports.home import ANY_SERVICE, Entity, State
from sash.ports.tools import ActionOutcome, ServiceUse, ToolContext
from sash.values.continuations import Action
from sash.values.sessions import CONFIRM

# Seconds to wait until the states show the effect of a call.
READ_BACK_S = 3.0
# Seconds to wait for a new state, if no state can show the effect.
UNCONFIRMED_S = 1.0
# Above this number of entities, one request reads all states at once.
MAX_SINGLE_READS = 20
MAX_SHOWN = 40
UNKNOWN_CALLS = "services that cannot be told"
# Seconds to wait for the home to reconnect before a call of a crashed process is verified.
RECONNECT_S = 20.0

StatesById = dict[str, State | None]


@dataclass(frozen=True, slots=True)
class CallOutcome:
    """The states before and after a service call, and whether the effect was verified.

    `verified` is None if the effect cannot be observed. `error` is the home's message if the call failed
    after it had changed something. `response` is the data that the service returned.
    """

    before: StatesById
    after: StatesById
    verified: bool | None
    error: str = ""
    response: dict[str, Any] | None = None

    def merge(self, later: "CallOutcome") -> "CallOutcome":
        """Combine with the outcome of a later call. The less certain verification wins."""
        both = (self.verified, later.verified)
        verified = False if False in both else None if None in both else True
        return CallOutcome(
            later.before | self.before, self.after | later.after, verified, self.error or later.error
        )

    def describe_entities(self, entities: Iterable[Entity]) -> list[dict[str, str]]:
        """Return a dict with the states before and after for each of the first `MAX_SHOWN` entities.

        Entities that have no state of their own, such as scenes, are named only.
        """
        return [
            {"entity_id": entity.id, "name": entity.name}
            | {
                when: _describe_state(states[entity.id])
                for when, states in (("before", self.before), ("after", self.after))
                if entity.id in states and entity.domain not in TIMESTAMP_DOMAINS
            }
            for entity in list(entities)[:MAX_SHOWN]
        ]


def _name_entity(entity: Entity) -> dict[str, Any]:
    """Return the id, the name and the other names, among which there may be one in the user's language."""
    return {"entity_id": entity.id, "name": entity.name} | (
        {"aliases": list(entity.aliases)} if entity.aliases else {}
    )


class HomeActions:
    """Calls services. The caller has already checked the policy."""

    def __init__(self, live_home: LiveHome, *, read_back_s: float | None = None) -> None:
        self.live_home = live_home
        self._read_back_s = READ_BACK_S if read_back_s is None else read_back_s

    async def list_uses(self, arguments: dict[str, Any], context: ToolContext) -> Iterable[ServiceUse]:
        """Return the services that the policy must check.

        After a crash the home may still be connecting, so this waits up to `RECONNECT_S` seconds.
        """
        if context.under_way_since is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout(RECONNECT_S):
                    await self.live_home.wait_until_ready()
        return self._parse(arguments).list_uses()

    async def preview(self, arguments: dict[str, Any], context: ToolContext) -> dict[str, Any]:
        """Describe the call without making it: the service, its data, and the entities with their states."""
        call, index = self._parse(arguments), self.live_home.index
        entities = [_name_entity(e) | describe_now(index, e) for e in call.entities]
        preview: dict[str, Any] = {"service": call.service, "data": call.data, "entities": entities}
        if (script := index.entities.get(call.service)) is not None:
            preview |= {key: value for key, value in _name_entity(script).items() if key != "entity_id"}
        if call.member_ids:
            names = sorted(index.entities[key].name for key in call.member_ids if key in index.entities)
            hidden = len(call.member_ids) - len(names)
            preview["acts_on"] = [*names, *([f"{hidden} others"] if hidden else [])]
        calls = [UNKNOWN_CALLS if name == ANY_SERVICE else name for name in sorted(call.member_services)]
        within = _list_protected(call, index)
        return preview | ({"calls": calls} if calls else {}) | ({"within": within} if within else {})

    async def find_already_so(self, arguments: dict[str, Any], context: ToolContext) -> dict[str, Any] | None:
        """Return the states if every entity already has the state that the call would give it, else None.

        The members of groups, scenes and scripts are not read: a call that reaches them may change something.
        """
        call = self._parse(arguments)
        if not call.entities or call.member_ids or call.member_services or call.data_entities:
            return None
        now = await self.read_states(call.entity_ids)
        entities = []
        for entity in call.entities:
            state = now[entity.id]
            if state is None or not is_already_so(call.service, call.data, state):
                return None
            entities.append({"entity_id": entity.id, "name": entity.name, "now": state.state})
        note = "nothing was done, because it is already so"
        result = {"service": call.service, "entities": entities[:MAX_SHOWN], "already_so": True, "note": note}
        return result | ({"more": more} if (more := len(entities) - MAX_SHOWN) > 0 else {})

    async def call(self, arguments: dict[str, Any], context: ToolContext) -> ActionOutcome:
        """Make the call and return its result, with the states before and after it."""
        call = self._parse(arguments)
        outcome = await self.execute(call, context)
        return ActionOutcome(
            _build_result(call, outcome),
            outcome.verified,
            _save_states(outcome.before),
            _save_states(outcome.after),
        )

    async def verify(self, arguments: dict[str, Any], context: ToolContext) -> ActionOutcome | None:
        """Find out whether a call was made whose process died before it could record the result.

        Returns None if the call was not made and can safely be repeated. Raises `ServiceFailed` if that is
        uncertain: the effect cannot be observed, or the entities changed after the call was planned.
        """
        call = self._parse(arguments)
        now = await self.read_states(call.entity_ids)
        effects = _find_effects(call.service, call.data, now)
        results = {effect.is_met(now[key]) for key, effect in effects.items()}
        if not now or effects.keys() != now.keys() or None in results or not is_repeatable(call.service):
            raise ServiceFailed(f"it is unknown whether {call.service} was done")
        if results == {True}:
            result = _build_result(call, CallOutcome({}, now, True))
            return ActionOutcome(result, True, after=_save_states(now))
        since = context.under_way_since
        if since is not None and any(state.updated_at >= since for state in now.values() if state):
            raise ServiceFailed(f"something has changed since {call.service} was requested")
        return None

    async def execute(self, call: ServiceCall, context: ToolContext | None = None) -> CallOutcome:
        """Make a call, wait up to the read-back limit for its effect, and read the states again.

        If the call is cut off, the context gets the states before it, and the effect that the index shows.

        Raises `OutcomeUnknown` if the connection is lost during the call. Raises `ServiceFailed` if the call
        failed and changed nothing.
        """
        before = await self.read_states(call.entity_ids)
        effects = _find_effects(call.service, call.data, before)
        if context is not None:
            context.on_cut_off(lambda: self._observe(before, effects))
        try:
            response = await self.live_home.home.call_service(
                call.service,
                call.data,
                call.entity_ids,
                caller=context.caller if context else None,
                turn_id=context.continuation_id if context else None,
                return_response=call.response == "optional",
            )
        except HomeUnavailable as error:
            raise OutcomeUnknown(f"it is unknown whether {call.service} was done: {error.message}") from error
        except ServiceFailed as error:
            return await self._check_failed_call(call, before, error)
        try:
            after = await self._read_back(call, effects, before)
        except HomeError:
            return CallOutcome(before, {}, None, response=response)
        return CallOutcome(before, after, _verify(effects, before, after), response=response)

    def _observe(self, before: StatesById, effects: dict[str, ExpectedEffect]) -> ActionOutcome:
        """Return the states before a call that was cut off, and those after it if they show its effect."""
        try:
            states = self.live_home.index.states
        except HomeError:
            return ActionOutcome(None, before=_save_states(before))
        after = {key: states.get(key) for key in before}
        is_done = _verify(effects, before, after) is True
        return ActionOutcome(
            None, is_done or None, _save_states(before), _save_states(after) if is_done else {}
        )

    async def read_possible_effect(self, action: Action) -> dict[str, Any]:
        """Return the current states that an action may have caused whose outcome is unknown, by entity."""
        arguments, moment = action.arguments, datetime.now(UTC)
        before: StatesById = {
            key: State(key, saved["state"], saved["attributes"], moment, moment)
            for key, saved in action.before.items()
        }
        service, data = str(arguments.get("service", "")).strip().lower(), arguments.get("data") or {}
        effects, now = _find_effects(service, data, before), await self.read_states(before)
        return _save_states(
            {
                key: state
                for key, state in now.items()
                if key not in effects or effects[key].is_met(state, before[key]) is not False
            }
        )

    async def read_states(self, entity_ids: Iterable[str]) -> StatesById:
        """Read the current states from the home, not from the index. A missing entity has the state None."""
        wanted = tuple(entity_ids)
        if len(wanted) > MAX_SINGLE_READS:
            found = {state.entity_id: state for state in await self.live_home.home.get_states()}
            return {entity_id: found.get(entity_id) for entity_id in wanted}
        states = await asyncio.gather(*(self.live_home.home.get_state(key) for key in wanted))
        return dict(zip(wanted, states, strict=True))

    def _parse(self, arguments: dict[str, Any]) -> ServiceCall:
        call = parse_service_call(arguments, self.live_home.index, self.live_home.services)
        if call.response == "only":
            raise InvalidInput(f"{call.service} changes nothing and only answers: use query_service for it")
        return call

    async def _check_failed_call(
        self, call: ServiceCall, before: StatesById, error: ServiceFailed
    ) -> CallOutcome:
        """Return an outcome if the failed call has changed a state. Otherwise raise the error of the call."""
        try:
            after = await self.read_states(call.entity_ids)
        except HomeError as lost:
            raise OutcomeUnknown(f"{error.message}; the result is unknown: {lost.message}") from lost
        if _save_states(after) == _save_states(before):
            raise error
        return CallOutcome(before, after, False, error.message)

    async def _read_back(
        self, call: ServiceCall, effects: dict[str, ExpectedEffect], before: StatesById
    ) -> StatesById:
        index = self.live_home.index

        def is_settled() -> bool:
            return all(
                effect.is_settled(index.states.get(key), before[key]) for key, effect in effects.items()
            )

        if effects:
            is_observable = any(effect.is_observable for effect in effects.values())
            limit_s = self._read_back_s if is_observable else min(self._read_back_s, UNCONFIRMED_S)
            await self.live_home.wait_until(is_settled, set(effects), limit_s)
        return await self.read_states(call.entity_ids)


def _list_protected(call: ServiceCall, index: HomeIndex) -> list[dict[str, Any]]:
    """Return what happens to locks, alarms, covers and valves inside the scripts and scenes of a call.

    A dict has the names of the entities, their aliases by name, and the service if it is known. Members that
    are not exposed have no name here.
    """
    called = {entity.domain for entity in call.entities}
    members = sorted(
        call.member_ids, key=lambda key: index.entities[key].name if key in index.entities else ""
    )
    within: list[dict[str, Any]] = []
    for domain in CONFIRM:
        reached = [
            index.entities[key] for key in members if key in index.entities and key.startswith(f"{domain}.")
        ]
        named: dict[str, Any] = {"names": [entity.name for entity in reached]}
        if aliases := {entity.name: list(entity.aliases) for entity in reached if entity.aliases}:
            named["aliases"] = aliases
        services = sorted(name for name in call.member_services if name.startswith(f"{domain}."))
        within += [{"service": service, **named} for service in services if reached]
        if reached and not services and domain not in called:
            within.append(named)
    return within


def describe_now(index: HomeIndex, entity: Entity) -> dict[str, str]:
    """Return the present state of an entity for a preview, without measured values, which drift.

    It is empty for an entity that has no state of its own, such as a scene.
    """
    return {} if entity.domain in TIMESTAMP_DOMAINS else {"now": index.get_state(entity.id)}


def _build_result(call: ServiceCall, outcome: CallOutcome) -> dict[str, Any]:
    result: dict[str, Any] = {
        "service": call.service,
        "entities": outcome.describe_entities(call.entities),
        "verified": outcome.verified,
    }
    if outcome.response:
        result["response"] = outcome.response
    if len(call.entities) > MAX_SHOWN:
        result["more"] = len(call.entities) - MAX_SHOWN
    if outcome.error:
        result["note"] = f"only a part of the call worked, tell the user: {outcome.error}"
    elif outcome.verified is False:
        result["note"] = "the call was made, but the house does not show the effect: tell the user"
    return result


def _verify(effects: dict[str, ExpectedEffect], before: StatesById, after: StatesById) -> bool | None:
    """Return whether the states after a call show its effect on all entities; None if that is unknown."""
    results = {effect.is_met(after[key], before[key]) for key, effect in effects.items()}
    if False in results:
        return False
    return True if results == {True} and effects.keys() == after.keys() else None


def _find_effects(service: str, data: dict[str, Any], before: StatesById) -> dict[str, ExpectedEffect]:
    """Return the expected effect by entity id. Entities without an observable effect are left out."""
    found = {
        key: find_expected_effect(service, data, state) for key, state in before.items() if state is not None
    }
    return {key: effect for key, effect in found.items() if effect is not None}


def _save_states(states: StatesById) -> dict[str, Any]:
    return {key: SavedState.from_state(state).to_dict() for key, state in states.items() if state is not None}


def _describe_state(state: State | None) -> str:
    return "gone" if state is None else str(SavedState.from_state(state))
