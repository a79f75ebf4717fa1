"""Understands sentences about the home without a model, in every language of home-assistant-intents."""

import asyncio
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import tzinfo
from typing import Any, Protocol
from weakref import WeakValueDictionary

from sash.errors import HomeUnavailable
from sash.home.answer_sources import cite_state
from sash.home.index import HomeIndex
from sash.intents.commands import COMMANDS, find_shopping_list, plan_calls
from sash.intents.grammar import Grammar, Interpretation, Slot, find_language, load_grammar
from sash.intents.home_names import HomeNames, NamedEntities
from sash.intents.question_detection import is_question
from sash.intents.questions import DEFAULT_DOMAINS, QUESTIONS, find_facts
from sash.intents.replies import ReplyWriter, SpokenState
from sash.intents.target_entities import find_matching_entities, find_named_entity
from sash.intents.vocabulary import Vocabulary
from sash.ports.home import UNAVAILABLE, Entity
from sash.ports.intents import LocalCallResult, Utterance, make_local_answer, make_local_calls
from sash.ports.model import Answer
from sash.values.citations import MAX_CITATIONS
from sash.values.clock import Clock

# Longer sentences are left to the model.
MAX_CHARS = 200
# The languages that sessions may have loaded, besides that of the home: in all, and for one owner. Each takes
# about ten megabytes. Sentences in further languages are left to the model.
MAX_LANGUAGES = 8
MAX_LANGUAGES_PER_OWNER = 3
# Sentences up to this length take only milliseconds, so they need no thread.
MAX_INLINE_CHARS = 80
MAX_RECENT = 64
TOOL = "call_service"
MAX_UNAVAILABLE_NAMES = 5
_COMMAND_DOMAINS = {intent: rule.domains for intent, rule in COMMANDS.items()}
# The grammar takes "all lights off" for a question. It counts as one only with a sign of a question.
_AMBIGUOUS_RESPONSES = frozenset({"any", "any_short", "all"})


class IndexSource(Protocol):
    """Provides the current index of a home. `LiveHome` implements it."""

    @property
    def index(self) -> HomeIndex:
        """The current index. Raise `HomeUnavailable` if the home is not connected."""


class HomeIntents:
    """Understands the sentences of Home Assistant's own grammar, if their meaning is certain.

    A command becomes calls of `call_service`, and is answered after those calls. A question is answered at
    once from the index and never calls anything. The meaning is certain if the grammar and the names of the
    home explain the whole sentence in exactly one way. All other sentences are left to the model.
    """

    def __init__(
        self,
        source: IndexSource,
        *,
        vocabulary: Vocabulary | None = None,
        clock: Clock,
        time_zone: tzinfo | None = None,
        max_languages: int = MAX_LANGUAGES,
    ) -> None:
        self._source = source
        self._vocabulary = vocabulary or Vocabulary()
        self._clock = clock
        self._time_zone = time_zone
        self._max_languages = max_languages
        self._writers: dict[str, ReplyWriter] = {}
        self._loads_by_owner: Counter[str] = Counter()
        self._names: HomeNames | None = None
        # Interpretations of recent sentences, by language, text and area; and the names that they depend on.
        self._recent: dict[tuple[str, str, Any], list[Interpretation]] = {}
        self._recent_names: HomeNames | None = None
        self._load_lock = asyncio.Lock()
        self._owner_locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def warm_up(self, language: str | None = None) -> None:
        """Load the grammar of a language, and the names, in advance. None is the language of the home."""
        try:
            index: HomeIndex | None = self._source.index
        except HomeUnavailable:
            index = None
        if found := find_language(language or (index.language if index else "en")):
            await self._load_language(found)
        if index is not None:
            await self.load_names(index)

    async def understand(self, utterance: Utterance) -> Answer | None:
        """Return an answer or service calls. Return None to leave the sentence to the model."""
        if not 0 < len(utterance.text.strip()) <= MAX_CHARS:
            return None
        try:
            index = self._source.index
        except HomeUnavailable:
            return None
        of_home = find_language(index.language)
        spoken = find_language(utterance.language) if utterance.language else None
        # People also use the language of the home, whatever the language of their browser or device is.
        for language in dict.fromkeys(filter(None, (spoken, of_home))):
            writer = await self._load_language(
                language, None if language == of_home else utterance.session.owner
            )
            answer = writer and await self._understand_in(writer, utterance, index)
            if answer:
                return answer
        return None

    async def _understand_in(
        self, writer: ReplyWriter, utterance: Utterance, index: HomeIndex
    ) -> Answer | None:
        """Return an answer or service calls if the sentence belongs to the grammar of one language."""
        language, owner = writer.grammar.language, utterance.session.owner
        names = await self.load_names(index)
        speaker_area = names.find_area(utterance.area)
        text = self._vocabulary.rewrite(utterance.text, language)
        found = await self._interpret(owner, writer.grammar, text, names, speaker_area)
        best = [interpretation for interpretation in found if interpretation.rank == found[0].rank]
        is_asked = is_question(utterance.text, language) or is_question(text, language)
        area_id = speaker_area.value if speaker_area else None
        if not best or (utterance.has_model and best[0].intent == "HassNevermind"):
            return None  # The model may have asked what is not wanted any more.
        if all(each.intent in QUESTIONS for each in best) and not utterance.results:
            return self._answer_question(best, is_asked, index, area_id, writer)
        is_command = not is_asked and not any(each.intent in QUESTIONS for each in found)
        if not is_command or TOOL not in utterance.tools or any(each.intent not in COMMANDS for each in best):
            return None
        if utterance.results:
            return _report_results(best, utterance.results, index, area_id, writer)
        return _plan_command(best, index, area_id)

    def _answer_question(
        self,
        best: list[Interpretation],
        is_asked: bool,
        index: HomeIndex,
        area_id: str | None,
        writer: ReplyWriter,
    ) -> Answer | None:
        found = _find_single_meaning(best, index, area_id, DEFAULT_DOMAINS)
        if found is None:
            return None
        interpretation, entities = found
        if interpretation.response in _AMBIGUOUS_RESPONSES and not is_asked:
            return None
        facts = find_facts(interpretation, entities, index, self._clock.now().astimezone(self._time_zone))
        if facts is None:
            return None
        matched, unmatched = (
            [
                writer.describe_state(
                    state.entity_id,
                    index.entities[state.entity_id].name,
                    state.state,
                    state.attributes,
                    interpretation.state_words,
                )
                for state in states
            ]
            for states in (facts.matched, facts.unmatched)
        )
        slots = {**_read_slots(interpretation, index), **facts.slots}
        text = writer.write(interpretation, slots, matched, unmatched)
        if interpretation.response == "all":
            text += _list_unavailable(interpretation, entities, index)
        read = (facts.matched or facts.unmatched)[:MAX_CITATIONS]
        return make_local_answer(text, tuple(cite_state(index, state) for state in read))

    async def _load_language(self, language: str, owner: str | None = None) -> ReplyWriter | None:
        """Return the writer of a language. Return None if the owner may not load one more language.

        Loading takes up to a second, and a grammar stays in memory. The language of the home has no owner.
        """
        if writer := self._writers.get(language):
            return writer
        async with self._lock_of(owner or ""), self._load_lock:
            if writer := self._writers.get(language):
                return writer
            if owner is not None and not self._has_room(owner):
                return None
            self._writers[language] = ReplyWriter(await asyncio.to_thread(load_grammar, language))
            if owner is not None:
                self._loads_by_owner[owner] += 1
            return self._writers[language]

    def _has_room(self, owner: str) -> bool:
        """Return whether one more language may be loaded for an owner."""
        return (
            self._loads_by_owner[owner] < MAX_LANGUAGES_PER_OWNER
            and self._loads_by_owner.total() < self._max_languages
        )

    def _lock_of(self, owner: str) -> asyncio.Lock:
        """Return the lock of an owner. It lets an owner use one thread at a time, and others the rest."""
        lock = self._owner_locks.get(owner)
        if lock is None:
            lock = self._owner_locks[owner] = asyncio.Lock()
        return lock

    async def _interpret(
        self, owner: str, grammar: Grammar, text: str, names: HomeNames, speaker_area: Slot | None
    ) -> list[Interpretation]:
        """Interpret a sentence. Recent results are kept: a command is interpreted again for its answer."""
        if self._recent_names is not names:
            self._recent_names, self._recent = names, {}
        key = (grammar.language, text, speaker_area and speaker_area.value)
        if (found := self._recent.get(key)) is not None:
            return found
        if len(text) <= MAX_INLINE_CHARS:
            found = grammar.interpret(text, names.find_in, speaker_area)
        else:
            async with self._lock_of(owner):
                found = await asyncio.to_thread(grammar.interpret, text, names.find_in, speaker_area)
        if self._recent_names is names:
            if len(self._recent) >= MAX_RECENT:
                self._recent.clear()
            self._recent[key] = found
        return found

    async def load_names(self, index: HomeIndex) -> HomeNames:
        """Return the names of an index. They are built again only if the index is a new one."""
        if self._names is None or self._names.index is not index:
            async with self._load_lock:
                if self._names is None or self._names.index is not index:
                    self._names = await asyncio.to_thread(HomeNames, index)
        return self._names


def _find_single_meaning(
    best: list[Interpretation],
    index: HomeIndex,
    area_id: str | None,
    default_domains: Mapping[str, tuple[str, ...]],
) -> tuple[Interpretation, tuple[Entity, ...]] | None:
    """Return the only meaning of a sentence with its entities; None if it is ambiguous."""
    first = best[0]
    if "name" in first.slots:
        return find_named_entity(best, index, area_id)
    if any((other.intent, other.slots) != (first.intent, first.slots) for other in best):
        return None
    if first.intent.startswith("HassShoppingList"):
        return first, find_shopping_list(index)
    return first, find_matching_entities(first, index, default_domains.get(first.intent, ()))


def _plan_command(best: list[Interpretation], index: HomeIndex, area_id: str | None) -> Answer | None:
    found = _find_single_meaning(best, index, area_id, _COMMAND_DOMAINS)
    if found is None:
        return None
    interpretation, entities = found
    # The bare name of a scene is a command. The bare name of a light may answer a question.
    if interpretation.is_bare and any(entity.domain not in ("scene", "script") for entity in entities):
        return None
    calls = plan_calls(interpretation, entities, index)
    if not calls:
        return None
    return make_local_calls(TOOL, {f"local-{n}": call.arguments for n, call in enumerate(calls, 1)})


def _list_unavailable(interpretation: Interpretation, entities: Sequence[Entity], index: HomeIndex) -> str:
    """Return a note with the unavailable entities for the end of an answer; empty if there are none.

    It is also empty for a sentence about one named entity, whose state the answer says already.
    """
    if "name" in interpretation.slots:
        return ""
    names = [entity.name for entity in entities if index.get_state(entity.id) == UNAVAILABLE]
    more = f", +{len(names) - MAX_UNAVAILABLE_NAMES}" if len(names) > MAX_UNAVAILABLE_NAMES else ""
    return f" ({', '.join(names[:MAX_UNAVAILABLE_NAMES])}{more}: {UNAVAILABLE})" if names else ""


def _report_results(
    best: list[Interpretation],
    results: Sequence[LocalCallResult],
    index: HomeIndex,
    area_id: str | None,
    writer: ReplyWriter,
) -> Answer | None:
    """Return the answer to a command, from the results of its calls: the index may not be updated yet.

    Return None if a call was refused, failed or could not be verified. Then the model explains the result.
    """
    if all(result.is_denied_by_user for result in results):
        return make_local_answer(writer.write_denied())
    changed: dict[str, SpokenState] = {}
    is_already_so = True
    for result in results:
        content = result.parse_object()
        is_call = result.name == TOOL and isinstance(content.get("entities"), list)
        is_already_so = is_already_so and content.get("already_so") is True
        if not is_call or not (content.get("already_so") or content.get("verified", False) is not False):
            return None
        changed.update((state.entity_id, state) for state in _read_states(content, index, writer))
    if is_already_so:
        return make_local_answer(writer.write_already_so(changed.values()))
    named = (
        each
        for each in best
        if "name" in each.slots and changed.keys() & set(each.get_value("name").entity_ids)
    )
    interpretation = next(named, best[0])
    found = _find_single_meaning(best, index, area_id, _COMMAND_DOMAINS)
    note = _list_unavailable(interpretation, found[1], index) if found else ""
    text = writer.write(interpretation, _read_slots(interpretation, index), changed.values())
    return make_local_answer(text + note)


def _read_states(content: dict[str, Any], index: HomeIndex, writer: ReplyWriter) -> Iterator[SpokenState]:
    """Yield the new states of entities, from a result of `call_service`."""
    for entry in content["entities"]:
        if isinstance(entry, dict) and isinstance(entity_id := entry.get("entity_id"), str):
            known = index.states.get(entity_id)
            after = str(entry.get("after") or (known.state if known else ""))
            attributes = known.attributes if known else {}
            yield writer.describe_state(entity_id, str(entry.get("name") or entity_id), after, attributes)


def _read_slots(interpretation: Interpretation, index: HomeIndex) -> dict[str, Any]:
    """Return the slots for the answer's template, with the names of entities, areas and floors."""
    slots: dict[str, Any] = {name: slot.text or slot.value for name, slot in interpretation.slots.items()}
    if isinstance(named := interpretation.get_value("name"), NamedEntities):
        slots["name"] = named.name
    for kind, places in (("area", index.areas), ("floor", index.floors)):
        if (place := places.get(interpretation.get_value(kind) or "")) is not None:
            slots[kind] = place.name
    return slots
