"""Sentences about the house, in every language of home-assistant-intents, without a model."""

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import tzinfo
from typing import Any, Protocol

from sash.errors import HomeUnavailable
from sash.home.index import Index
from sash.intents.commands import COMMANDS, Call, plan, shopping_list
from sash.intents.grammar import LANGUAGES_KEPT, Grammar, Meaning, Slot, closest_language, load_grammar
from sash.intents.mood import asks
from sash.intents.names import Called, Names
from sash.intents.questions import ABOUT, QUESTIONS, facts_for
from sash.intents.replies import Replies, SpokenState
from sash.intents.targets import all_of, named
from sash.intents.vocabulary import Vocabulary
from sash.ports.home import UNAVAILABLE, Entity
from sash.ports.intents import ToolResult, Utterance, answering
from sash.ports.model import Answer
from sash.values.clock import Clock

# Nobody gives an order that is longer.
LONGEST = 200
# A sentence that is not longer is recognised in a few milliseconds: a thread would take longer to be had.
SHORT = 80
TOOL = "call_service"
MAX_NAMED = 5
_DOMAINS = {intent: command.domains for intent, command in COMMANDS.items()}
# "All lights off" is an answer to no question, and "any lights on" is none without a sign of asking.
_STATEMENTS = frozenset({"any", "any_short", "all"})


class Known(Protocol):
    """A house as far as it is needed here: `KnownHome` is one."""

    @property
    def index(self) -> Index: ...


class HomeIntents:
    """Understands what Home Assistant's own sentences can say, if it is sure.

    A command becomes calls of `call_service`, and is answered when they have been made; a question is
    answered at once, from the states that are known, and never calls anything. It is sure if the grammar and
    the names of the house explain the whole sentence, with one meaning; `mood` says when a sentence that is
    an order to the grammar is none. Everything else is for the model.
    """

    def __init__(
        self,
        known: Known,
        *,
        vocabulary: Vocabulary | None = None,
        clock: Clock,
        time_zone: tzinfo | None = None,
    ) -> None:
        self._known = known
        self._vocabulary = vocabulary or Vocabulary()
        self._clock = clock
        self._time_zone = time_zone
        self._replies: dict[str, Replies] = {}
        self._names: Names | None = None
        self._reading = asyncio.Lock()

    async def warm_up(self, language: str | None = None) -> None:
        """Read the grammar of a language, or else of the house's, and the names, before anybody waits."""
        try:
            index: Index | None = self._known.index
        except HomeUnavailable:
            index = None
        if found := closest_language(language or (index.language if index else "en")):
            await self._speak(found)
        if index is not None:
            await self._names_in(index)

    async def understand(self, heard: Utterance) -> Answer | None:
        """Answer, or call services, or leave it to the model (None)."""
        if not 0 < len(heard.text.strip()) <= LONGEST:
            return None
        try:
            index = self._known.index
        except HomeUnavailable:
            return None
        wanted = heard.session.preferences.get("language")
        preferred = closest_language(wanted) if isinstance(wanted, str) else None
        language = preferred or closest_language(index.language)
        if language is None:
            return None
        replies, names = await self._speak(language), await self._names_in(index)
        here = names.area(heard.session.area)
        text = self._vocabulary.rewrite(heard.text, language)
        meanings = await _recognise(replies.grammar, text, names, here)
        best = [meaning for meaning in meanings if meaning.rank == meanings[0].rank]
        asked = asks(heard.text, language) or asks(text, language)
        place = here.value if here else None
        if not best:
            return None
        if all(meaning.intent in QUESTIONS for meaning in best) and not heard.results:
            return self._answer(best, asked, index, place, replies)
        is_order = not asked and not any(meaning.intent in QUESTIONS for meaning in meanings)
        if not is_order or TOOL not in heard.tools or any(m.intent not in COMMANDS for m in best):
            return None
        return (
            _tell(best, heard.results, index, place, replies) if heard.results else _act(best, index, place)
        )

    def _answer(
        self, best: list[Meaning], asked: bool, index: Index, here: str | None, replies: Replies
    ) -> Answer | None:
        found = _one(best, index, here, ABOUT)
        if found is None:
            return None
        meaning, entities = found
        if meaning.response in _STATEMENTS and not asked:
            return None
        facts = facts_for(meaning, entities, index, self._clock.now().astimezone(self._time_zone))
        if facts is None:
            return None
        matched, unmatched = (
            [
                replies.spoken(
                    s.entity_id, index.entities[s.entity_id].name, s.state, s.attributes, meaning.words
                )
                for s in states
            ]
            for states in (facts.matched, facts.unmatched)
        )
        slots = {**_said(meaning, index), **facts.slots}
        said = replies.say(meaning, slots, matched, unmatched)
        return answering(said + (_not_there(meaning, entities, index) if meaning.response == "all" else ""))

    async def _speak(self, language: str) -> Replies:
        """Return the words of a language; the one that was read first is given up for one too many."""
        if (replies := self._replies.get(language)) is not None:
            return replies
        async with self._reading:
            replies = self._replies.get(language) or Replies(await asyncio.to_thread(load_grammar, language))
            if len(self._replies) >= LANGUAGES_KEPT and language not in self._replies:
                del self._replies[next(iter(self._replies))]
            self._replies[language] = replies
        return replies

    async def _names_in(self, index: Index) -> Names:
        """Return the names of a house; they are listed anew only for another index."""
        if self._names is None or self._names.index is not index:
            async with self._reading:
                if self._names is None or self._names.index is not index:
                    self._names = await asyncio.to_thread(Names, index)
        return self._names


async def _recognise(grammar: Grammar, text: str, names: Names, here: Slot | None) -> list[Meaning]:
    if len(text) > SHORT:
        return await asyncio.to_thread(grammar.recognise, text, names.within, here)
    return grammar.recognise(text, names.within, here)


def _one(
    best: list[Meaning], index: Index, here: str | None, about: Mapping[str, tuple[str, ...]]
) -> tuple[Meaning, tuple[Entity, ...]] | None:
    """Return the one meaning that a sentence has, with the entities that it is about; None if not sure."""
    if "name" in best[0].slots:
        return named(best, index, here)
    first = best[0]
    if any((other.intent, other.slots) != (first.intent, first.slots) for other in best):
        return None
    if first.intent.startswith("HassShoppingList"):
        return first, shopping_list(index)
    return first, all_of(first, index, about.get(first.intent, ()))


def _act(best: list[Meaning], index: Index, here: str | None) -> Answer | None:
    found = _one(best, index, here, _DOMAINS)
    if found is None or (found[0].bare and not _is_said_alone(found[1])):
        return None
    calls = plan(*found, index)
    if not calls:
        return None
    made = tuple(_tool_call(number, call) for number, call in enumerate(calls, 1))
    return Answer(tool_calls=made, local=True)


def _is_said_alone(entities: tuple[Entity, ...]) -> bool:
    """Whether the bare name is an order: that of a scene is, but that of a light may answer a question."""
    return all(entity.domain in ("scene", "script") for entity in entities)


def _tool_call(number: int, call: Call) -> dict[str, Any]:
    arguments = json.dumps(call.arguments, ensure_ascii=False)
    return {"id": f"local-{number}", "type": "function", "function": {"name": TOOL, "arguments": arguments}}


def _not_there(meaning: Meaning, entities: Sequence[Entity], index: Index) -> str:
    """Say of which things nothing is known that a sentence is about, if it is about several."""
    if "name" in meaning.slots:
        return ""
    names = [entity.name for entity in entities if index.state(entity.id) == UNAVAILABLE]
    more = f", +{len(names) - MAX_NAMED}" if len(names) > MAX_NAMED else ""
    return f" ({', '.join(names[:MAX_NAMED])}{more}: {UNAVAILABLE})" if names else ""


def _tell(
    best: list[Meaning],
    results: Sequence[ToolResult],
    index: Index,
    here: str | None,
    replies: Replies,
) -> Answer | None:
    """Say what was done, as the results tell; the index may not know of it yet.

    What was refused, has failed, or is not so when the house was asked again, is for the model to explain.
    """
    done: dict[str, SpokenState] = {}
    for result in results:
        read = _read(result)
        if read is None:
            return None
        done.update((state.entity_id, state) for state in _after(read, index, replies))
    named = (m for m in best if "name" in m.slots and done.keys() & set(m.value("name").entity_ids))
    meaning = next(named, best[0])
    found = _one(best, index, here, _DOMAINS)
    left_out = _not_there(meaning, found[1], index) if found else ""
    return answering(replies.say(meaning, _said(meaning, index), done.values()) + left_out)


def _read(result: ToolResult) -> dict[str, Any] | None:
    """Return what a call that was made has returned; None if it was not, or not with success."""
    try:
        read = json.loads(result.content)
    except ValueError:
        return None
    made = result.name == TOOL and isinstance(read, dict) and isinstance(read.get("entities"), list)
    return read if made and read.get("verified", False) is not False else None


def _after(read: dict[str, Any], index: Index, replies: Replies) -> Iterator[SpokenState]:
    for entry in read["entities"]:
        if isinstance(entry, dict) and isinstance(entity_id := entry.get("entity_id"), str):
            known = index.states.get(entity_id)
            after = str(entry.get("after") or (known.state if known else ""))
            attributes = known.attributes if known else {}
            yield replies.spoken(entity_id, str(entry.get("name") or entity_id), after, attributes)


def _said(meaning: Meaning, index: Index) -> dict[str, Any]:
    """Return the words of a sentence for its answer: things by their names, the rest as it was said."""
    slots: dict[str, Any] = {name: slot.text or slot.value for name, slot in meaning.slots.items()}
    if isinstance(called := meaning.value("name"), Called):
        slots["name"] = called.name
    for kind, places in (("area", index.areas), ("floor", index.floors)):
        if (place := places.get(meaning.value(kind) or "")) is not None:
            slots[kind] = place.name
    return slots
