"""Conversations with a home from a seeded generator: the same seed gives the same conversation.

The user stays with a topic and a room for a few turns, then changes both. A third of the turns use tools,
with one or two calls. The results are JSON in the format of Home Assistant.
"""

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from benchmarks._conversation_topics import DAYS, FOLLOW_UPS, PEOPLE, ROOMS, STATES, TOPICS, UNITS

STARTED_AT = datetime(2026, 11, 2, 6, 40, tzinfo=UTC)

SHARE_WITH_TOOLS = 1 / 3
SHARE_WITH_TWO_CALLS = 0.35
# Of the turns with two calls, the share in which the second call needs the result of the first.
SHARE_IN_SEQUENCE = 0.5
SHARE_OF_FOLLOW_UPS = 0.3


@dataclass(frozen=True)
class Call:
    """A tool call and its result."""

    id: str
    name: str
    arguments: dict[str, Any]
    result: str


@dataclass(frozen=True)
class Turn:
    """A question, the plans with their calls, the answer, and the minutes until the next question."""

    question: str
    plans: tuple[tuple[Call, ...], ...]
    answer: str
    minutes: int

    def steps(self) -> Iterator[list[dict[str, Any]]]:
        """Yield the messages in their order: the question, each plan with its results, the answer."""
        yield [{"role": "user", "content": self.question}]
        for plan in self.plans:
            calls = [
                {
                    "id": call.id,
                    "type": "function",
                    "function": {"name": call.name, "arguments": json.dumps(call.arguments)},
                }
                for call in plan
            ]
            yield [
                {"role": "assistant", "content": "", "tool_calls": calls},
                *({"role": "tool", "content": c.result, "tool_call_id": c.id, "name": c.name} for c in plan),
            ]
        yield [{"role": "assistant", "content": self.answer}]


def generate_turns(seed: int) -> Iterator[Turn]:
    """Yield the turns of an endless conversation."""
    rng, now, turns_left = random.Random(seed), STARTED_AT, 0
    questions: tuple[str, ...]
    while True:
        if not turns_left:
            turns_left, room = rng.randint(1, 4), rng.choice(ROOMS)
            questions, entities, answers = rng.choice(TOPICS)
        turns_left -= 1
        fill = _make_filler(rng, room)
        follows_up = turns_left and rng.random() < SHARE_OF_FOLLOW_UPS
        question = fill(rng.choice(FOLLOW_UPS if follows_up else questions))
        plans: tuple[tuple[Call, ...], ...] = ()
        if rng.random() < SHARE_WITH_TOOLS:
            entity_ids = [fill(entity) for entity in entities]
            calls = [
                _make_call(rng, entity_ids, room, now)
                for _ in range(1 + (rng.random() < SHARE_WITH_TWO_CALLS))
            ]
            in_sequence = len(calls) > 1 and rng.random() < SHARE_IN_SEQUENCE
            plans = tuple((call,) for call in calls) if in_sequence else (tuple(calls),)
        answer = map(fill, rng.sample(answers, rng.choices((1, 2, 3, 4), (3, 4, 2, 2))[0]))
        minutes = rng.randint(1, 9)
        now += timedelta(minutes=minutes)
        yield Turn(_capitalize(question), plans, " ".join(map(_capitalize, answer)), minutes)


def _make_filler(rng: random.Random, room: str) -> Callable[[str], str]:
    """Return a function that fills the placeholders of a sentence."""
    person, other = rng.choice(PEOPLE), rng.choice([name for name in ROOMS if name != room])

    def fill(text: str) -> str:
        return text.format(
            room=room,
            r=room.replace(" ", "_"),
            other=other,
            person=person,
            p=person.split()[-1].lower(),
            day=rng.choice(DAYS),
            clock=f"{rng.randrange(24):02}:{rng.randrange(60):02}",
            t=rng.randrange(16, 22),
            t2=rng.randrange(22, 40),
            t3=rng.randrange(40, 55),
            d=rng.randrange(1, 10),
            n=rng.randrange(3, 60),
            pct=rng.randrange(8, 99),
            w=rng.randrange(20, 400),
            w2=rng.randrange(400, 900),
            kw=rng.randrange(1, 9),
            kwh=rng.randrange(8, 30),
            k=rng.randrange(22, 65) * 100,
        )

    return fill


def _make_call(rng: random.Random, entities: list[str], room: str, now: datetime) -> Call:
    """Return a call of one of the three tools that read the home."""
    call_id = f"call_{rng.getrandbits(96):024x}"
    match rng.choice(("get_states", "get_states", "get_history", "search_index")):
        case "get_states":
            asked = rng.sample(entities, rng.randint(1, len(entities)))
            states = [_make_state(rng, entity, now) for entity in asked]
            return Call(call_id, "get_states", {"entity_ids": asked}, _to_json(states))
        case "get_history":
            entity = rng.choice(entities)
            hours = rng.choice((6, 12, 24))
            count = rng.randint(3, 13)
            changes = [
                {
                    "state": _choose_value(rng, entity),
                    "last_changed": _format_time(now - timedelta(minutes=hours * 60 * n / count)),
                }
                for n in range(count, 0, -1)
            ]
            result = {"entity_id": entity, "changes": changes}
            return Call(call_id, "get_history", {"entity_ids": [entity], "hours": hours}, _to_json(result))
        case _:
            words = f"{room} {rng.choice(entities).partition('.')[2].replace('_', ' ')}"
            names = [entity for entity in entities for _ in range(rng.randint(1, 2))]
            found = [
                {
                    "entity_id": f"{entity}_{n}" if n else entity,
                    "name": entity.partition(".")[2].replace("_", " ").capitalize(),
                    "area": room,
                    "score": round(rng.uniform(0.3, 0.99), 2),
                }
                for n, entity in enumerate(names)
            ]
            return Call(call_id, "search_index", {"query": words, "limit": 8}, _to_json(found))


def _make_state(rng: random.Random, entity: str, now: datetime) -> dict[str, Any]:
    """Return a state in the format of Home Assistant."""
    attributes: dict[str, Any] = {}
    if entity.startswith("sensor."):
        if unit := next((unit for word, unit in UNITS.items() if word in entity), None):
            attributes |= {"unit_of_measurement": unit}
        attributes |= {"state_class": "measurement"}
    elif entity.startswith("climate."):
        warm = rng.randrange(160, 230) / 10
        attributes |= {"temperature": rng.randrange(18, 23), "current_temperature": warm}
    elif entity.startswith("light."):
        attributes |= {"brightness": rng.randrange(256), "color_mode": "color_temp"}
    attributes |= {"friendly_name": entity.partition(".")[2].replace("_", " ").title()}
    return {
        "entity_id": entity,
        "state": _choose_value(rng, entity),
        "attributes": attributes,
        "last_changed": _format_time(now - timedelta(minutes=rng.randrange(600))),
    }


def _choose_value(rng: random.Random, entity: str) -> str:
    values = STATES.get(entity.partition(".")[0])
    return rng.choice(values) if values else f"{rng.uniform(0, 99):.1f}"


def _format_time(at: datetime) -> str:
    return at.isoformat(timespec="seconds")


def _to_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _capitalize(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]
