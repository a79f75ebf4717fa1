"""The prompts of the home benchmark: those of Sash, and of systems that list the states or the names."""

import csv
import io
import itertools
import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import yaml

from benchmarks._prompt_cache import (
    CALLS_CACHED,
    Message,
    TokenCosts,
    count_cached_tokens,
    count_common_messages,
)
from benchmarks._simulated_model import HOME_OVERVIEW, LOOKUP_TOOLS, Dialogue, PlayedTurn
from sash.engine.context import SYSTEM_PROMPT
from sash.home.index import HomeIndex
from sash.memory.tokens import TOKENS_PER_REPLY
from sash.ports.home import Entity, State

SASH = "Sash"

# The attributes in the prompt of Home Assistant.
ATTRIBUTES = (
    "temperature",
    "current_temperature",
    "brightness",
    "humidity",
    "unit_of_measurement",
    "device_class",
    "current_position",
    "percentage",
    "volume_level",
    "media_title",
)
LIVE_CONTEXT = {
    "type": "function",
    "function": {
        "name": "GetLiveContext",
        "description": "Provides real-time information about the CURRENT state, value, or mode of devices, "
        "sensors, entities, or areas. You may filter by name, domain and area, also combined.",
        "parameters": {
            "type": "object",
            "properties": {
                "name": {"type": "string", "description": "Filter entities by name or alias."},
                "domain": {"type": "string", "description": "Filter entities by domain, such as light."},
                "area": {"type": "string", "description": "Filter entities by area name or alias."},
            },
        },
    },
}


def _select_attributes(state: State) -> dict[str, Any]:
    return {name: state.attributes[name] for name in ATTRIBUTES if name in state.attributes}


def _area_name(index: HomeIndex, entity: Entity) -> str:
    area = index.get_area(entity)
    return area.name if area else ""


def write_csv(index: HomeIndex, states: Mapping[str, State]) -> str:
    """Write a CSV line for each entity, with its state."""
    out = io.StringIO()
    table = csv.writer(out, lineterminator="\n")
    table.writerow(("entity_id", "name", "state", "area", "attributes"))
    for entity in sorted(index.entities.values(), key=lambda e: e.name):
        state = states[entity.id]
        attributes = " ".join(f"{name}={value}" for name, value in _select_attributes(state).items())
        table.writerow((entity.id, entity.name, state.state, _area_name(index, entity), attributes))
    return f"The devices in this smart home:\n{out.getvalue()}"


def write_yaml(index: HomeIndex, states: Mapping[str, State], only: Iterable[Entity] | None = None) -> str:
    """Write entities in the format of Home Assistant's LLM API, with the given states."""
    listed = []
    for entity in sorted(index.entities.values() if only is None else only, key=lambda e: e.name):
        info: dict[str, Any] = {"names": entity.name, "domain": entity.domain}
        state = states.get(entity.id)
        if state is not None:
            info["state"] = state.state
        info["areas"] = _area_name(index, entity)
        if state is not None and (attributes := _select_attributes(state)):
            info["attributes"] = {k: str(v) if isinstance(v, int) else v for k, v in attributes.items()}
        listed.append(info)
    text: str = yaml.dump(listed, allow_unicode=True, sort_keys=False, Dumper=yaml.CSafeDumper)
    return f"An overview of the areas and the devices in this smart home:\n{text}"


def list_all_states(
    write: Callable[[HomeIndex, Mapping[str, State]], str],
) -> Callable[[Dialogue], list[list[Message]]]:
    """Return a function that makes prompts with all states in the system prompt."""

    def make_prompts(dialogue: Dialogue) -> list[list[Message]]:
        return _make_prompts(dialogue, lambda turn: write(dialogue.index, turn.states), _acting_steps)

    return make_prompts


def list_names(dialogue: Dialogue) -> list[list[Message]]:
    """Make prompts with only the names in the system prompt; a tool returns the states."""
    names = write_yaml(dialogue.index, {})

    def steps(turn: PlayedTurn) -> list[list[Message]]:
        entities = turn.ask.find_entities(dialogue.index)
        if not turn.ask.reads or not entities:
            return _acting_steps(turn)
        filters = {kind: turn.ask.search[kind] for kind in ("area", "domain") if kind in turn.ask.search}
        if filters:
            found = [
                entity
                for entity in dialogue.index.entities.values()
                if filters.get("area") in (None, _area_name(dialogue.index, entity))
                and filters.get("domain") in (None, entity.domain)
            ]
        else:
            filters, found = {"name": entities[0].name}, entities
        call_id = f"call_{len(turn.user['content']):024x}"
        function = {"name": "GetLiveContext", "arguments": json.dumps(filters)}
        call = {"id": call_id, "type": "function", "function": function}
        result = {
            "success": True,
            "result": f"Live Context: {write_yaml(dialogue.index, turn.states, found)}",
        }
        content = json.dumps(result, ensure_ascii=False)
        request = {"role": "assistant", "content": "", "tool_calls": [call]}
        response = {"role": "tool", "content": content, "tool_call_id": call_id, "name": "GetLiveContext"}
        return [[request, response], *_acting_steps(turn)]

    return _make_prompts(dialogue, lambda _: names, steps)


def _acting_steps(turn: PlayedTurn) -> list[list[Message]]:
    """Return the steps of a turn without lookups."""
    return [step for step in turn.steps if step[-1]["name"] not in LOOKUP_TOOLS]


def _make_prompts(
    dialogue: Dialogue, head: Callable[[PlayedTurn], str], steps: Callable[[PlayedTurn], list[list[Message]]]
) -> list[list[Message]]:
    prompts, before = [], []
    for turn in dialogue.turns:
        system = {"role": "system", "content": f"{SYSTEM_PROMPT}\n\n{head(turn)}"}
        own = [turn.user]
        prompts.append([system, *before, *own])
        for step in steps(turn):
            own = own + step
            prompts.append([system, *before, *own])
        before = [*before, *own, turn.answer]
    return prompts


class PromptTotals(NamedTuple):
    """The totals of the prompts of a dialogue, in tokens."""

    turns: int
    calls: int
    tokens: int
    cached: int
    largest: int

    @property
    def tokens_per_turn(self) -> float:
        return self.tokens / self.turns

    @property
    def share(self) -> float:
        return self.cached / self.tokens

    def paid_per_turn(self, cached_price: float) -> float:
        """Return the cost of a turn, in tokens at the full price."""
        return (self.tokens - self.cached * (1 - cached_price)) / self.turns


def measure_prompts(prompts: Sequence[list[Message]], turns: int, costs: TokenCosts) -> PromptTotals:
    """Count the tokens of prompts, and the part that a provider has in its cache."""
    counted: dict[int, int] = {}
    counts = []
    for prompt in prompts:
        for message in prompt:
            if id(message) not in counted:
                counted[id(message)] = costs.count(message)
        counts.append([counted[id(message)] for message in prompt])
    cached = 0
    for n, prompt in enumerate(prompts):
        earlier = prompts[max(0, n - CALLS_CACHED) : n]
        same, nearest = max(
            ((count_common_messages(prompt, o), k) for k, o in enumerate(earlier)), default=(0, 0)
        )
        common = costs.tools + sum(counts[n][:same]) if earlier else 0
        if earlier and same < min(len(prompt), len(earlier[nearest])):
            common += costs.count_common_start(prompt[same], earlier[nearest][same])
        cached += count_cached_tokens(common)
    totals = [TOKENS_PER_REPLY + costs.tools + sum(each) for each in counts]
    return PromptTotals(turns, len(prompts), sum(totals), cached, max(totals))


OTHER_SYSTEMS: dict[str, Callable[[Dialogue], list[list[Message]]]] = {
    "all states, CSV": list_all_states(write_csv),
    "all states, YAML": list_all_states(write_yaml),
    "names, YAML; states from a tool": list_names,
}


def compare(dialogue: Dialogue) -> dict[str, PromptTotals]:
    """Measure Sash and the other systems with one home."""
    sash = [prompt for turn in dialogue.turns for prompt in turn.prompts]
    results = {SASH: measure_prompts(sash, len(dialogue.turns), TokenCosts(dialogue.tools))}
    other_tools = [tool for tool in dialogue.tools if tool["function"]["name"] not in LOOKUP_TOOLS]
    for name, make in OTHER_SYSTEMS.items():
        tools = [*other_tools, LIVE_CONTEXT] if make is list_names else other_tools
        results[name] = measure_prompts(make(dialogue), len(dialogue.turns), TokenCosts(tools))
    return results


PARTS = ("tools", "system prompt", "home", "digest, recalled", "lookups", "other messages")
# The counts of turns, by their labels.
COUNTS: tuple[tuple[str, Callable[[Dialogue], int]], ...] = (
    (
        "turns with lookups",
        lambda dialogue: sum(len(_acting_steps(turn)) < len(turn.steps) for turn in dialogue.turns),
    ),
    ("wrong answers", lambda dialogue: dialogue.wrong_answers),
    ("incomplete answers", lambda dialogue: dialogue.incomplete_answers),
    ("understood locally", lambda dialogue: sum(turn.understood_locally for turn in dialogue.turns)),
)


def count_parts(dialogue: Dialogue) -> Counter[str]:
    """Count the tokens of each part of Sash's prompts."""
    costs, tokens_by_part = TokenCosts(dialogue.tools), Counter[str]()
    for prompt in itertools.chain.from_iterable(turn.prompts for turn in dialogue.turns):
        tokens_by_part["tools"] += costs.tools
        for n, message in enumerate(prompt):
            is_lookup = message["role"] == "tool" and message["name"] in LOOKUP_TOOLS
            if message["role"] == "system":
                is_home = HOME_OVERVIEW.match(message["content"])
                part = "system prompt" if not n else "home" if is_home else "digest, recalled"
            else:
                part = "lookups" if is_lookup else "other messages"
            tokens_by_part[part] += costs.count(message)
    return tokens_by_part
