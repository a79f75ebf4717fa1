"""Answers questions about numbers of the present: temperatures, consumption, batteries."""

from collections.abc import Sequence

from sash.intents.answers.names import Name
from sash.intents.asking.answers import MAX_DESCRIBED, MAX_LISTED, Answers, start_sentence
from sash.intents.asking.measures import MEASURES, Measure, Reading, can_measure, read_measure
from sash.intents.missing_words import find_place, say_missing
from sash.intents.past.missing_meter import Metered, say_no_meter
from sash.intents.sentence.clause import Clause, Word
from sash.intents.situation import Reply
from sash.intents.targets import Search, Targets, find_targets, list_matching
from sash.ports.home import NO_STATE, Entity

LOW_BATTERY = 20.0
_OUTSIDE_WORDS = ("outdoor", "outside", "garden", "außen", "draußen")
# Several thermometers of a home: those of rooms, without averages.
_MEASURE_ORDER = (
    "set_to", "humidity", "battery", "voltage", "co2", "pressure", "position", "volume", "power", "energy",
    "brightness", "temperature", "speed",
)  # fmt: skip
_VALUE_ASKS = frozenset({"what", "how", "how_much", "how_many"})


class ValueAnswers(Answers):
    """Answers the questions of one sentence about numbers."""

    def answer(self, clause: Clause) -> Reply | None:
        """Return the answer to a question for a number; None for any other question."""
        if compared := self._compare_with_limit(clause):
            return compared
        measure = self._choose_measure(clause)
        if measure is None:
            return None
        return self._tell_only_meter(clause, measure[0]) or self._answer_measure(clause, *measure)

    def _compare_with_limit(self, clause: Clause) -> Reply | None:
        """Return whether values are above or below a number: "is it above 21 in the lounge?"."""
        limits = [m for m in self._situation.sentence.find("condition") if m.value in ("above", "below")]
        limit = clause.amount.value
        if not limits or limit is None or not clause.is_question or not set(clause.ask) <= {"is"}:
            return None
        said = {place for match in limits for place in match.places}
        texts = {self._situation.sentence.words[place] for place in said}
        words = [word for word in clause.words if word.text not in texts and not word.has("property")]
        is_warmth = clause.amount.unit in (None, "degrees")
        name = next((each for each in _MEASURE_ORDER if each in clause.properties), None)
        name = name or ("temperature" if is_warmth else None)
        if name is None or not words:
            return None
        measure = MEASURES[name]
        found = list_matching(
            words, lambda entity: can_measure(measure, entity, self._index), self._situation.words
        )
        entities = self._prefer_sensors(found, name, words)
        readings = [read_measure(measure, entity, self._index) for entity in entities]
        known = [reading for reading in readings if reading.value is not None]
        if not known:
            return None
        sign = 1 if limits[0].value == "above" else -1
        is_so = all(sign * ((reading.value or 0) - limit) > 0 for reading in known)
        parts = [
            self._writer.phrase(
                "state.part",
                place=self.name_place(each.entity),
                value=self._writer.quantity(each.value or 0, each.unit),
            )
            for each in known
        ]
        key = "compare.yes" if is_so else "compare.no"
        text = self._writer.say(key, parts=self._writer.join(parts))
        return self._reply(text, [reading.entity for reading in known])

    def _tell_only_meter(self, clause: Clause, name: str) -> Reply | None:
        """Return that nothing but the home is metered, to "what is using the most power?"."""
        if name not in ("power", "energy") or not ({"highest", "lowest"} & set(clause.ask) and clause.do):
            return None
        measuring = [
            e for e in self._index.entities.values() if self._index.get_device_class(e.id) == "power"
        ]
        if len(measuring) != 1:
            return None
        value = self._writer.state(self._index, measuring[0])
        return self._reply(self._writer.say("state.only_meter", value=value), measuring)

    def answer_batteries(self, clause: Clause) -> Reply | None:
        """Return the answer to a question about all batteries; None for other questions."""
        if "low_battery" in clause.properties or ("battery" in clause.properties and clause.is_any):
            return self._list_low_batteries()
        if "battery" in clause.properties and not clause.do and not self._names_thing(clause):
            return self._list_batteries()
        return None

    def _choose_measure(self, clause: Clause) -> tuple[str, Measure] | None:
        if "set_to" in clause.ask:
            return "set_to", MEASURES["set_to"]
        named = set(clause.properties)
        if clause.do == ("used",) and not named and {"what", "how_much"} & set(clause.ask):
            return "power", MEASURES["power"]  # "What are we using right now?"
        asks_for_value = bool(_VALUE_ASKS & set(clause.ask)) and not clause.is_any
        if named and {"highest", "lowest"} & set(clause.ask):
            asks_for_value = True
        if "playing" in named or "weather" in named:
            return None
        if {"warmer", "colder"} & set(clause.do):
            named.add("temperature")
            asks_for_value = True
        if clause.do and "temperature" not in named and not asks_for_value:
            return None
        name = next((name for name in _MEASURE_ORDER if name in named), None)
        return None if name is None else (name, MEASURES[name])

    def _answer_measure(self, clause: Clause, name: str, measure: Measure) -> Reply:
        def accepts(entity: Entity) -> bool:
            return can_measure(measure, entity, self._index)

        words = [word for word in clause.words if not (word.has("property") and not word.entity_ids)]
        if name == "temperature":
            words = [word for word in words if "kind.climate" not in word.keys or word.entity_ids]
        search = Search(
            accepts, is_plural=True, area_id=self._situation.area_id if not words else None,
            focus_ids=self._situation.focus_ids[:1],
        )  # fmt: skip
        targets = self._find_in_places(words, clause.excluded, search)
        if not targets.entities:
            beside = self._search_beside(words, search)
            targets = beside if beside is not None and beside.entities else targets
        if not targets.entities:
            return self._lack_measure(clause, words, targets, name)
        entities = self._prefer_sensors(targets.entities, name, words)
        readings = [read_measure(measure, entity, self._index) for entity in entities]
        if any("room.inside" in word.keys for word in clause.words):
            readings = self._keep_inside(readings)
        known = [reading for reading in readings if reading.value is not None]
        if not known and name != "battery" and any(entity.domain != "sensor" for entity in entities):
            return self._describe_entities(entities)
        if not known and name == "battery":
            return self._reply(
                self._writer.say("state.battery_gone", name=self._writer.names(entities)), entities
            )
        if not known:
            return self._reply(
                self._writer.say("state.not_known", names=self._writer.names(entities)), entities
            )
        if "average" in clause.ask and len(known) > 1:
            mean = sum(reading.value or 0 for reading in known) / len(known)
            text = self._writer.say("state.average", value=self._writer.quantity(mean, known[0].unit))
            return self._reply(text, [reading.entity for reading in known])
        known = self._keep_extreme(clause, known)
        text = self._say_readings(known, name)
        reason = self._say_reason(known, name) if "why" in clause.ask else ""
        text = f"{self._miss_here(clause, name, known)}{text} {reason}".strip()
        return self._reply(text, [each.entity for each in known])

    def _say_reason(self, readings: Sequence[Reading], name: str) -> str:
        """Return what may make it warm or cold in the rooms of some readings: their heating and windows."""
        areas = {reading.entity.area_id for reading in readings} - {None}
        there = [entity for entity in self._index.entities.values() if entity.area_id in areas]
        known = [entity for entity in there if self._index.get_state(entity.id) not in NO_STATE]
        related = [
            entity
            for entity in known
            if name == "temperature"
            and (entity.domain == "climate" or self._index.get_device_class(entity.id) == "window")
        ]
        told = [self._describe_one(entity) for entity in related[:MAX_DESCRIBED]]
        return " ".join([*told, self._writer.say("why.no_reason")])

    def _miss_here(self, clause: Clause, name: str, readings: Sequence[Reading]) -> str:
        """Return that nothing is measured in the room of the speaker, if that is asked for; else empty."""
        area = self._index.areas.get(self._situation.area_id or "")
        if "here" not in clause.refer or area is None or any(r.entity.area_id == area.id for r in readings):
            return ""
        what = self._name_measure(name)
        return self._writer.say("state.no_measure_in", what=what, place=self._writer.name(area)) + " "

    def _name_measure(self, name: str) -> Name:
        return self._writer.name_noun(self._writer.phrase(f"measure.{name}"))

    def read_temperatures(self, place: Word) -> list[Reading]:
        """Return the temperatures of a place, one for each of its rooms."""
        measure = MEASURES["temperature"]
        search = Search(lambda entity: can_measure(measure, entity, self._index), is_plural=True)
        targets = find_targets([place], (), search, self._situation.words)
        entities = self._prefer_sensors(targets.entities, "temperature", [place])
        readings = [read_measure(measure, entity, self._index) for entity in entities]
        known = [reading for reading in readings if reading.value is not None]
        return self._keep_inside(known) if "room.inside" in place.keys else known

    def _keep_extreme(self, clause: Clause, readings: list[Reading]) -> list[Reading]:
        """Keep the highest or the lowest value, if that is asked for: "which room is the warmest?"."""
        if any("kind.room" in word.keys for word in clause.words):
            readings = self._keep_inside(readings)
        if "highest" in clause.ask:
            return [max(readings, key=lambda reading: reading.value or 0)]
        if "lowest" in clause.ask:
            return [min(readings, key=lambda reading: reading.value or 0)]
        return readings

    def _keep_inside(self, readings: list[Reading]) -> list[Reading]:
        outside = self._writer.phrase("state.outside")
        return [each for each in readings if self.name_place(each.entity) != outside] or readings

    def _search_beside(self, words: Sequence[Word], search: Search) -> Targets | None:
        """Search in the areas of the things that were named: what the thermostat there is set to."""
        named = (self._index.entities.get(key) for word in words for key in word.entity_ids)
        areas = {entity.area_id for entity in named if entity is not None and entity.area_id}
        places = [Word("", frozenset({f"area:{area}"})) for area in sorted(areas)[:1]]
        return find_targets(places, (), search, self._situation.words) if places else None

    def _prefer_sensors(self, entities: Sequence[Entity], name: str, words: Sequence[Word]) -> list[Entity]:
        """Return one entity for each place: a sensor rather than a thermostat, no averages beside rooms."""
        named = [e for e in entities if any(e.id in word.entity_ids for word in words)]
        if named:
            return named
        if name == "energy" or name == "power":
            return self._prefer_whole_house(entities)
        by_area: dict[str | None, Entity] = {}
        for entity in entities:
            current = by_area.get(entity.area_id)
            is_better = current is None or (entity.domain == "sensor" and current.domain != "sensor")
            if is_better and not (entity.domain == "weather" and len(entities) > 1):
                by_area[entity.area_id] = entity
        with_area = [entity for area, entity in by_area.items() if area]
        return with_area or list(by_area.values())

    def _prefer_whole_house(self, entities: Sequence[Entity]) -> list[Entity]:
        ranked = sorted(entities, key=lambda e: -(read_measure(MEASURES["power"], e, self._index).value or 0))
        return list(ranked[:1])

    def _lack_measure(self, clause: Clause, words: Sequence[Word], targets: Targets, name: str) -> Reply:
        """Return an honest no, with the nearest thing that is known."""
        what = self._name_measure(name)
        if targets.fault == "unknown" and targets.missing:
            text = say_missing(self._situation, targets.missing)
            return Reply(text, is_guess=True)
        if name in ("power", "energy") and words and targets.choices and "why" not in clause.ask:
            metered = Metered("energy", targets.choices, tuple(words))
            return self._reply(say_no_meter(self._situation, metered), ())
        if (place := find_place(self._situation, words)) is not None:
            return Reply(self._writer.say("state.no_measure_in", what=what, place=place), is_guess=True)
        if not words:
            return Reply(self._writer.say("state.no_measure_here", what=what), is_guess=True)
        named = [self._index.entities[key] for word in words for key in word.entity_ids]
        if named and len(named) == len(words):
            names = self._writer.names(named)
            return Reply(self._writer.say("state.no_measure_of", what=what, name=names), is_guess=True)
        where = " ".join(word.text for word in words)
        near = [e.name for e in targets.choices[:3]] if targets.fault != "unable" else []
        text = self._writer.say("state.no_measure", what=what, where=where)
        if near and len(near) < 3:
            text += " " + self._writer.say("state.but_known", names=self._writer.names(targets.choices[:2]))
        return Reply(text, is_guess=True)

    def _say_readings(self, readings: Sequence[Reading], name: str) -> str:
        writer = self._writer
        if len(readings) == 1:
            reading = readings[0]
            value = writer.quantity(reading.value or 0, reading.unit)
            place = self.name_place(reading.entity)
            if place and name in ("temperature", "humidity") and reading.entity.domain != "weather":
                return writer.say(f"state.{name}_at", place=place, value=value)
            if reading.entity.domain != "sensor":
                what, named = writer.phrase(f"measure.{name}"), writer.name(reading.entity)
                return writer.say("state.value_of", what=what, name=named, value=value)
            key = "state.set_to" if name == "set_to" else "state.value"
            return writer.say(key, name=writer.name(reading.entity), value=value)
        parts = [
            writer.phrase(
                "state.part",
                place=self.name_place(reading.entity) or Name(writer.name(reading.entity)),
                value=writer.quantity(reading.value or 0, reading.unit),
            )
            for reading in readings[:MAX_LISTED]
        ]
        return start_sentence(writer.join(parts)) + "."

    def name_place(self, entity: Entity) -> Name:
        """Return the place that an entity measures: its area, or "outside"."""
        if any(word in entity.name.casefold() for word in _OUTSIDE_WORDS):
            return Name(self._writer.phrase("state.outside"))
        area = self._index.get_area(entity)
        return self._writer.name(area) if area else Name("")

    def _list_low_batteries(self) -> Reply:
        low: list[str] = []
        for entity in self._index.entities.values():
            if not can_measure(MEASURES["battery"], entity, self._index):
                continue
            reading = read_measure(MEASURES["battery"], entity, self._index)
            if reading.value is None:
                low.append(self._writer.say("state.battery_gone", name=self._writer.name(entity)))
            elif reading.value <= LOW_BATTERY:
                value = self._writer.quantity(reading.value, "%")
                low.append(self._writer.say("state.value", name=self._writer.name(entity), value=value))
        return self._reply(" ".join(low) or self._writer.say("state.batteries_fine"), ())

    def _names_thing(self, clause: Clause) -> bool:
        return any(word.entity_ids or not word.has("property") for word in clause.words)

    def _list_batteries(self) -> Reply:
        """Return the level of each battery, the lowest first."""
        measure = MEASURES["battery"]
        found = [e for e in self._index.entities.values() if can_measure(measure, e, self._index)]
        readings = [read_measure(measure, entity, self._index) for entity in found]
        known = sorted((each for each in readings if each.value is not None), key=lambda one: one.value or 0)
        unknown = [reading.entity for reading in readings if reading.value is None]
        parts = [self._say_readings(known, "battery")] if known else []
        if unknown:
            parts.append(self._writer.say("state.not_known", names=self._writer.names(unknown)))
        return self._reply(" ".join(parts) or self._writer.say("state.no_batteries"), found)
