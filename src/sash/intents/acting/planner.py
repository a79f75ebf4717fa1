"""Plans the service calls for a command, or says why it cannot be done, or asks which thing is meant."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from sash.intents.acting.act import STEPS, Act, read_act
from sash.intents.acting.already_so import is_already_so, say_already, say_not_so
from sash.intents.acting.choices import are_already_so, ask_which
from sash.intents.acting.default_domains import (
    DEFAULT_DOMAINS,
    EVERYTHING,
    EVERYTHING_BY_ACT,
    PROPERTY_DOMAINS,
    choose_domains,
    is_property,
    is_room_warmth,
)
from sash.intents.acting.options import OptionChoice, find_option
from sash.intents.acting.plan import Plan, list_ids
from sash.intents.acting.refusals import Refusals
from sash.intents.acting.services import CannotDo, ServiceChoice, choose_service
from sash.intents.sentence.clause import Clause, Word
from sash.intents.situation import PlannedCall, Situation
from sash.intents.targets import Accepts, Search, Targets, find_targets
from sash.ports.home import UNAVAILABLE, Entity

CALL_TOOL = "call_service"
MAX_ENTITIES = 100
_PLAY = "media_player.media_play"
_HOUSE_KEYS = frozenset({"room.house"})
_LIGHTS = frozenset({"light"})
_TEMPERATURE = "temperature"
# Things in these states are the ones that a command without a name means.
_ACTIVE_STATES: Mapping[str, frozenset[str]] = {
    "off": frozenset({"on", "playing", "paused", "cleaning", "heat", "cool", "auto", "heat_cool", "idle"}),
    "pause": frozenset({"playing", "cleaning", "mowing"}),
    "play": frozenset({"paused", "idle"}),
    "stop": frozenset({"playing", "cleaning", "opening", "closing", "mowing", "on", "active"}),
    "next": frozenset({"playing"}),
    "previous": frozenset({"playing"}),
    "mute": frozenset({"playing", "on"}),
    "unmute": frozenset({"playing", "on"}),
    "louder": frozenset({"playing", "on"}),
    "quieter": frozenset({"playing", "on"}),
    "stronger": frozenset({"playing", "on"}),
    "weaker": frozenset({"playing", "on"}),
    "close": frozenset({"open", "opening"}),
    "lock": frozenset({"unlocked", "open"}),
    "dock": frozenset({"cleaning", "paused", "idle", "mowing"}),
    "darker": frozenset({"on"}),
    **dict.fromkeys(
        ("warmer", "colder", "up", "down"), frozenset({"playing", "heat", "cool", "auto", "heat_cool"})
    ),
}
# Things that are in use are meant by acts such as "up".
_IN_USE = frozenset({"playing"})
# The states after which these services change nothing.
_SETTLED = {
    "turn_off": "off",
    "turn_on": "on",
    "close_cover": "closed",
    "open_cover": "open",
    "lock": "locked",
}


class Planner:
    """Plans the commands of one sentence.

    `chosen_ids` are what the user chose where several could be meant.
    """

    def __init__(self, situation: Situation, chosen_ids: Sequence[str] = ()) -> None:
        self._chosen_ids = frozenset(chosen_ids)
        self._situation = situation
        self._index = situation.index
        self._states = situation.index.states
        self._writer = situation.writer
        self._refusals = Refusals(situation)

    def plan(self, clause: Clause) -> Plan:
        """Return the calls for a clause."""
        chosen = find_option(self._situation, clause)
        if chosen is not None and not chosen.is_setting:
            return self._plan_option(chosen)
        plan = self._plan_act(clause)
        # "Turn on the reading light" means the light, and not the setting "Reading" of another one.
        return self._plan_option(chosen) if chosen is not None and not plan.calls else plan

    def expect(self, plan: Plan) -> None:
        """Plan the next clauses as if the players that a plan turns on were on."""
        turned_on = {
            str(key)
            for call in plan.calls
            if call.arguments["service"] == "media_player.turn_on"
            for key in call.arguments["entity_ids"]
        }
        on = {key: replace(self._states[key], state="on") for key in turned_on if key in self._states}
        self._states = {**self._states, **on} if on else self._states

    def _plan_act(self, clause: Clause) -> Plan:
        """Return the calls for what a clause says to do, without the options of things."""
        clause = self._replace_sensors(clause)
        act = read_act(clause)
        if clause.is_everything and not any(word.has("kind") for word in clause.words):
            return self._plan_everything(clause, act)
        words = [word for word in clause.words if not is_property(word)]
        if all(map(self._means_house, words)):
            return self._plan_house(clause, act) if words else self._plan_nameless(clause, act)
        search = self._make_search(clause, act, choose_domains(words, act, self._situation.words))
        targets = find_targets(words, clause.excluded, search, self._situation.words)
        if targets.fault and len(words) < len(clause.words):
            named = find_targets(clause.words, clause.excluded, search, self._situation.words)
            targets = targets if named.fault else named
        return self._plan_targets(targets, clause, act)

    def _replace_sensors(self, clause: Clause) -> Clause:
        """Return a clause about the place of a sensor: "set the living room temperature to 21"."""
        if not (clause.amount.value or STEPS.intersection(clause.do)):
            return clause
        words, properties = list(clause.words), clause.properties
        for n, word in enumerate(words):
            measured = {self._index.get_device_class(key) for key in word.entity_ids}
            areas = {self._index.entities[key].area_id for key in word.entity_ids} - {None}
            if measured == {_TEMPERATURE} and len(areas) == 1:
                words[n] = replace(word, keys=frozenset({f"area:{areas.pop()}"}), entity_ids=())
                properties = (*properties, _TEMPERATURE)
        return replace(clause, words=tuple(words), properties=properties)

    def _plan_option(self, chosen: OptionChoice) -> Plan:
        """Plan to set an option: a player that is off is turned on first, and one that is paused plays."""
        ids = list_ids(chosen.entities)
        if len(ids) > 1:
            return Plan(text=ask_which(chosen.entities, self._index, self._writer), choices=ids)
        data = {chosen.field: chosen.option}
        selected = {"service": chosen.service, "entity_ids": [*ids], "data": data}
        calls = [PlannedCall(CALL_TOOL, selected)]
        if chosen.field == "source" and self._index.get_state(ids[0]) == "off":
            turned_on = {"service": "media_player.turn_on", "entity_ids": [*ids], "data": {}}
            calls.insert(0, PlannedCall(CALL_TOOL, turned_on))
        elif chosen.field == "source" and self._index.get_state(ids[0]) == "paused":
            calls.append(PlannedCall(CALL_TOOL, {"service": _PLAY, "entity_ids": [*ids], "data": {}}))
        return Plan(tuple(calls), entity_ids=ids)

    def _plan_house(self, clause: Clause, act: Act) -> Plan:
        """Plan a command about the whole home: "off" is for everything, and "on" for its lights."""
        if act.has("off") and act.amount.is_empty:
            return self._plan_everything(clause, act)
        if act.has("on") and act.amount.is_empty:
            search = self._make_search(clause, act, _LIGHTS)
            targets = find_targets((), clause.excluded, search, self._situation.words)
            return self._plan_targets(targets, clause, act)
        return self._plan_nameless(clause, act)

    def _plan_everything(self, clause: Clause, act: Act) -> Plan:
        domains = next((EVERYTHING_BY_ACT[do] for do in clause.do if do in EVERYTHING_BY_ACT), EVERYTHING)
        accepts = self._accept(act, domains)
        search = Search(accepts, is_plural=True, area_id=None)
        targets = find_targets(clause.words, clause.excluded, search, self._situation.words)
        return self._plan_targets(targets, clause, act)

    def _plan_nameless(self, clause: Clause, act: Act) -> Plan:
        """Plan a command that names no thing: "louder" means the player that plays."""
        if clause.is_all and clause.do == ("off",) and not clause.refer:
            return self._plan_everything(clause, act)  # "All off".
        domains = [domain for do in clause.do for domain in DEFAULT_DOMAINS.get(do, ())]
        is_house = self._names_house(clause)
        if act.amount.unit == "degrees" or (is_house and is_room_warmth(act)):
            domains = ["climate"]
        named = [domain for name in clause.properties for domain in PROPERTY_DOMAINS.get(name, ())]
        domains = named or domains
        if not domains:
            return Plan(text=self._writer.say("ask.what"), is_refused=True, is_unsure=True)
        search = self._make_search(clause, act, frozenset(domains))
        area_id = None if is_house else self._situation.area_id
        if domains == ["climate"] and area_id is not None and self._has_thermostats_elsewhere(area_id):
            # "I'm cold" in a room without a thermostat does not warm another room.
            return self._refusals.refuse_warmth(area_id)
        # "It is dark in here" means the light of the room.
        is_room_light = domains == ["light"] and area_id is not None
        words = (Word("", frozenset({"kind.light"})),) if is_room_light else ()
        return self._plan_targets(
            find_targets(words, clause.excluded, search, self._situation.words), clause, act
        )

    def _has_thermostats_elsewhere(self, area_id: str) -> bool:
        """Return whether the rooms have thermostats of their own, and this one has none.

        A single thermostat, or one without a room, warms all rooms.
        """
        areas = [each.area_id for each in self._index.entities.values() if each.domain == "climate"]
        return len(areas) > 1 and None not in areas and area_id not in areas

    def _names_house(self, clause: Clause) -> bool:
        """Return whether a command is about the whole home: "turn off the lights in the house"."""
        # "In the house" is also where a person is.
        is_at_home = "home" in clause.do and len(clause.do) > 1
        return is_at_home or any(map(self._means_house, clause.words))

    def _means_house(self, word: Word) -> bool:
        """Return whether a word means the whole home, and no place or thing of that name."""
        is_named = bool(word.entity_ids) or self._situation.words.is_place(word.keys)
        return not word.keys.isdisjoint(_HOUSE_KEYS) and not is_named

    def _is_needless(self, entity: Entity, act: Act) -> bool:
        """Return whether less light or less warmth of a thing means nothing, because it is off.

        "It is too bright in here" turns no light on. "Dim the lamp" does.
        """
        state = self._index.states[entity.id]
        cools = "cool" in (state.attributes.get("hvac_modes") or ())
        is_less = act.has("darker") or (act.has("colder") and not cools)
        return is_less and act.amount.value is None and state.state == "off"

    def _names_thing(self, clause: Clause) -> bool:
        return any(word.entity_ids or word.has("kind") or word.has("noun") for word in clause.words)

    def _make_search(self, clause: Clause, act: Act, domains: frozenset[str] | None) -> Search:
        is_plural = clause.is_all or clause.is_everything or any(word.is_plural for word in clause.words)
        # "In the whole house" means all, and a place alone means all of its lights.
        is_house = self._names_house(clause)
        is_plural = is_plural or is_house
        is_plural = is_plural or (domains == _LIGHTS and not all(map(is_property, clause.words)))
        area_id = self._situation.area_id
        if "correct" in clause.refer and self._situation.focus_ids:
            # "The floor lamp" - "no, the ceiling light": the one in the same room.
            area_id = self._index.entities[self._situation.focus_ids[0]].area_id
        is_here = "here" in clause.refer
        return Search(
            self._accept(act, domains),
            is_plural=is_plural,
            area_id=area_id if not is_house and (is_here or not clause.is_all) else None,
            focus_ids=self._situation.focus_ids[:1],
            prefers=self._prefer(clause),
            goes_on="again" in clause.refer,
        )

    def _accept(self, act: Act, domains: frozenset[str] | None) -> Accepts:
        able = {
            key: choice
            for key, state in self._states.items()
            if (domains is None or state.domain in domains)
            and key in self._index.entities
            and (choice := choose_service(act, state)) is not None
        }
        return lambda entity: entity.id in able

    def _prefer(self, clause: Clause) -> Accepts:
        wanted = next((_ACTIVE_STATES[do] for do in clause.do if do in _ACTIVE_STATES), _IN_USE)
        active = {key for key, state in self._states.items() if state.state in wanted}
        if not any(key.startswith("media_player.") for key in active):
            # Without music, a player that is on is meant rather than one that is off.
            active |= {
                key
                for key, state in self._states.items()
                if state.domain == "media_player" and state.state not in ("off", UNAVAILABLE)
            }
        return lambda entity: entity.id in active

    def _plan_targets(self, targets: Targets, clause: Clause, act: Act) -> Plan:
        # "No, leave it on" takes back what was done, and "leave it on" alone does nothing.
        keeps = clause.keeps and "correct" not in clause.refer
        if keeps and (targets.fault in ("", "unable")) and (targets.entities or targets.choices):
            return self._plan_kept(targets.entities or targets.choices, act)
        found = targets.entities or targets.choices
        if found and not self._names_thing(clause) and all(self._is_needless(each, act) for each in found):
            return Plan(text=say_already(found, self._index, self._writer), entity_ids=list_ids(found))
        if targets.entities:
            return self._plan_entities(targets.entities, clause, act)
        if targets.fault:
            return self._refusals.explain(targets, clause)
        if not targets.choices:
            return Plan(text=self._writer.say("ask.what"), is_refused=True, is_unsure=True)
        if chosen := tuple(entity for entity in targets.choices if entity.id in self._chosen_ids):
            return self._plan_entities(chosen, clause, act)
        return self._ask_which(targets.choices, act)

    def _ask_which(self, choices: tuple[Entity, ...], act: Act) -> Plan:
        """Ask which thing is meant, or tell at once what would be the answer for each of them."""
        if are_already_so(choices, act, self._index):
            text = say_already(choices, self._index, self._writer)
            return Plan(text=text, entity_ids=list_ids(choices), is_already_so=True)
        problems = [
            (e, p) for e in choices if isinstance(p := choose_service(act, self._states[e.id]), CannotDo)
        ]
        if len(problems) == len(choices):
            return self._refusals.refuse(problems)
        text = ask_which(choices, self._index, self._writer)
        return Plan(text=text, choices=list_ids(choices))

    def _plan_kept(self, entities: tuple[Entity, ...], act: Act) -> Plan:
        """Return that things stay as they are, or how they are if that is not so: "leave the lights on"."""
        kept = [each for each in entities if is_already_so(act, self._index.get_state(each.id))]
        if not kept:
            text = say_not_so(entities, self._index, self._writer)
            return Plan(text=text, entity_ids=list_ids(entities), is_refused=True, is_settled=True)
        text = say_already(kept, self._index, self._writer)
        return Plan(text=text, entity_ids=list_ids(kept), is_settled=True)

    def _plan_entities(self, entities: tuple[Entity, ...], clause: Clause, act: Act) -> Plan:
        chosen: list[tuple[Entity, ServiceChoice]] = []
        problems: list[tuple[Entity, CannotDo]] = []
        for entity in entities:
            state = self._states[entity.id]
            match choose_service(act, state):
                case ServiceChoice() as choice:
                    chosen.append((entity, choice))
                case CannotDo() as problem:
                    problems.append((entity, problem))
        if not chosen and problems:
            return self._refusals.refuse(problems)
        unavailable = [e for e, _ in chosen if self._index.get_state(e.id) == UNAVAILABLE]
        if len(unavailable) == len(chosen):
            text = self._writer.say("cannot.unavailable", names=self._writer.names(unavailable))
            return Plan(text=text, entity_ids=list_ids(unavailable), is_refused=True)
        chosen = [(e, choice) for e, choice in chosen if e not in unavailable]
        if len(chosen) > 1 and act.is_step:
            lit = [(e, choice) for e, choice in chosen if self._index.get_state(e.id) == "on"]
            chosen = lit or chosen
        if len(chosen) > 1:
            chosen = self._drop_already_so(chosen)
        calls = tuple(_group(chosen))
        return Plan(calls, entity_ids=tuple(entity.id for entity, _ in chosen))

    def _drop_already_so(
        self, chosen: list[tuple[Entity, ServiceChoice]]
    ) -> list[tuple[Entity, ServiceChoice]]:
        """Leave out things that already are as wanted, unless all of them are."""

        def is_so(entity: Entity, choice: ServiceChoice) -> bool:
            wanted = _SETTLED.get(choice.service.partition(".")[2])
            wanted = choice.data.get("hvac_mode", wanted if not choice.data else None)
            return wanted is not None and wanted == self._index.get_state(entity.id)

        return [(e, choice) for e, choice in chosen if not is_so(e, choice)] or chosen


def _group(chosen: Iterable[tuple[Entity, ServiceChoice]]) -> Iterable[PlannedCall]:
    """Yield one call for all things with the same service and data."""
    groups: dict[tuple[str, str], tuple[ServiceChoice, list[str]]] = {}
    for entity, choice in chosen:
        groups.setdefault((choice.service, repr(choice.data)), (choice, []))[1].append(entity.id)
    for choice, entity_ids in groups.values():
        for start in range(0, len(entity_ids), MAX_ENTITIES):
            ids = entity_ids[start : start + MAX_ENTITIES]
            arguments = {"service": choice.service, "entity_ids": ids, "data": choice.data}
            yield PlannedCall(CALL_TOOL, arguments)
