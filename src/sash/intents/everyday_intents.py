"""Answers everyday sentences about the home without a model, in six languages."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from datetime import tzinfo
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from sash.errors import HomeUnavailable
from sash.home.index import HomeIndex
from sash.home.live_home import LiveHome
from sash.intents.acting.report import has_worked
from sash.intents.answers.writer import choose_writer
from sash.intents.earlier_topics import read_topics
from sash.intents.home_words import HomeWords
from sash.intents.other_parts import answer_talk
from sash.intents.question_detection import asks_ability, is_question
from sash.intents.readings import reply_to_sentence
from sash.intents.sentence.mood import keep_requests
from sash.intents.sentence.reader import SentenceReader
from sash.intents.sentence.remarks import leave_out_remarks
from sash.intents.sentence.sentence import Sentence
from sash.intents.situation import PlannedCall, Reply, Situation
from sash.intents.spoken_language import rank_languages, recognize_language
from sash.intents.statements import FORGET_TOOL, REMEMBER_TOOL
from sash.intents.words.lexicon import LANGUAGES, load_lexicon
from sash.intents.words.tokens import split_tokens
from sash.ports.home import Layout
from sash.ports.intents import Utterance, make_local_answer
from sash.ports.model import Answer
from sash.values.clock import Clock

if TYPE_CHECKING:
    from sash.intents.home_intents import HomeIntents

MAX_CHARS = 300
# Words and signs. Longer sentences are left to others: each part of a sentence is compared with all of it.
MAX_WORDS = 90
# So many earlier turns are searched for what a sentence refers to.
MAX_TURNS = 6
# So many earlier turns may tell the language of a sentence, and so many messages are remembered with theirs.
MAX_TOLD_LANGUAGES = 3
MAX_REMEMBERED = 256
# The phrases of a sentence that is about things of a home.
_ABOUT_HOME = frozenset({"kind", "room", "property", "do"})
_NO_HOME = HomeIndex(Layout(""), ())


class EverydayIntents:
    """Understands sentences by the words of a lexicon and of the home.

    A command becomes calls of tools, which are reported after they were made. Questions are answered at once.
    What they do not understand is left to the grammar of Home Assistant.
    If a language model can answer what is not understood, only sentences of which every word is known are
    answered here. Without a home, or while it is not connected, they answer talk, such as "what time is it?",
    and only if there is no language model.
    """

    def __init__(
        self,
        home: LiveHome | None,
        grammar: "HomeIntents | None",
        *,
        clock: Clock,
        time_zone: tzinfo | None = None,
    ) -> None:
        self._home = home
        self._grammar = grammar
        self._clock = clock
        self._time_zone = time_zone
        self._languages = tuple(language for language in LANGUAGES if _has_lexicon(language))
        self._readers: dict[str, tuple[HomeIndex, SentenceReader, HomeWords]] = {}
        self._spoken: dict[str, str | None] = {}
        self._lock = asyncio.Lock()

    async def warm_up(self, language: str | None = None) -> None:
        """Load the words of a language in advance. None is the language of the home."""
        if (index := self._find_index()) is None:
            return
        of_home = _base(language or index.language)
        await self._load(of_home if of_home in self._languages else "en", index)
        if self._grammar is not None:
            await self._grammar.warm_up(language)

    async def understand(self, utterance: Utterance) -> Answer | None:
        """Return an answer or calls of tools. Return None to leave the sentence to others."""
        text = utterance.text.strip()
        if not 0 < len(text) <= MAX_CHARS or len(split_tokens(text)) > MAX_WORDS:
            return None
        if utterance.has_model and not all(map(has_worked, utterance.results)):
            return None  # The model explains what went wrong.
        utterance = replace(utterance, text=text)
        if (index := self._find_index()) is None:
            if utterance.has_model:
                return None
            talk, language = await self._understand_in_any(utterance, _NO_HOME)
            return None if talk is None else _make_answer(talk, language)
        found, language = await self._understand_in_any(utterance, index)
        if found is not None and not found.is_guess:
            return _make_answer(found, language)
        if self._grammar is not None and (answer := await self._grammar.understand(utterance)):
            return answer
        return await self._miss_sense(utterance, index) if found is None else _make_answer(found, language)

    async def _miss_sense(self, utterance: Utterance, index: HomeIndex) -> Answer | None:
        """Say that a sentence was not understood, in its own language. None if that is given or not known.

        The offline model speaks the language of the home then.
        """
        if utterance.has_model or utterance.language or utterance.results:
            return None
        language = recognize_language(await self._measure(utterance.text, index))
        language = language or await self._find_spoken(utterance, index)
        if language is None or language == _base(index.language):
            return None
        return make_local_answer(choose_writer(language).say("cannot.sentence"))

    def _find_index(self) -> HomeIndex | None:
        """Return the index of the home; None without a home, or while it is not connected."""
        try:
            return None if self._home is None else self._home.index
        except HomeUnavailable:
            return None

    async def _understand_in_any(
        self, utterance: Utterance, index: HomeIndex
    ) -> tuple[Reply | None, str | None]:
        """Reply in the first language that understands the sentence as it is written, or else with slips.

        Return the reply and its language.
        """
        guesses: dict[str, Reply] = {}
        languages: list[str] = []
        readers = [each async for each in self._list_readers(utterance, index)]
        if utterance.results:
            # If the process has crashed, it is not known in which language the calls were planned.
            readers.sort(
                key=lambda each: (
                    each[0] != utterance.planned_in,
                    -each[1].measure_known(utterance.text),
                )
            )
        for language, reader, words in readers:
            languages.append(language)
            reply = await self._reply_to(utterance, reader.read(utterance.text), index, reader, words)
            if reply is not None and not reply.is_guess:
                return reply, language
            if reply is not None:
                guesses[language] = reply
        if not languages or utterance.has_model:
            return None, None  # A corrected word is not certain, and nor is a guess.
        scores = {
            language: self._readers[language][1].measure_known(utterance.text) for language in languages
        }
        best = max(languages, key=lambda language: scores[language])
        reader, words = await self._load(best, index)
        corrected = reader.read(utterance.text, corrects=True)
        if corrected.corrected:
            reply = await self._reply_to(utterance, corrected, index, reader, words)
            if reply is not None and (not reply.is_guess or best not in guesses):
                return reply, best
        return guesses.get(best), best

    async def _list_readers(
        self, utterance: Utterance, index: HomeIndex
    ) -> AsyncIterator[tuple[str, SentenceReader, HomeWords]]:
        """Yield the readers of the languages in which a sentence may be said, the likeliest first."""
        given = _base(utterance.language)
        if given is None:
            for language in await self._rank_languages(utterance, index):
                yield language, *(await self._load(language, index))
        elif given in self._languages:
            async for each in self._list_given(utterance, index, given):
                yield each
        else:
            # A user with another language may still say a sentence in English.
            reader, words = await self._load("en", index)
            if reader.measure_known(utterance.text) == 1.0:
                yield "en", reader, words

    async def _list_given(
        self, utterance: Utterance, index: HomeIndex, given: str
    ) -> AsyncIterator[tuple[str, SentenceReader, HomeWords]]:
        """Yield readers: of the user's language, of the home's, then those that know more words."""
        first = [each for each in dict.fromkeys((given, _base(index.language))) if each in self._languages]
        known = 0.0
        for language in filter(None, first):
            reader, words = await self._load(language, index)
            score = reader.measure_known(utterance.text)
            if known == 1.0 and not score:
                continue  # The language of the home has no part in this sentence.
            known = max(known, score)
            yield language, reader, words
        if known == 1.0:
            return
        others = []
        for language in self._languages:
            if language not in first:
                reader, words = await self._load(language, index)
                score = reader.measure_known(utterance.text)
                if score > known:
                    others.append((-score, language, reader, words))
        for _, language, reader, words in sorted(others, key=lambda other: other[:2])[:2]:
            yield language, reader, words

    async def _rank_languages(self, utterance: Utterance, index: HomeIndex) -> list[str]:
        """Return the languages in which a sentence may be said, the likeliest first."""
        of_home = _base(index.language)
        usual = of_home if of_home in self._languages else "en"
        spoken = await self._find_spoken(utterance, index)
        reader, _ = await self._load(usual or "en", index)
        if spoken in (None, usual) and reader.measure_likeness(utterance.text) == 1.0:
            return [usual or "en"]
        ranked = rank_languages(await self._measure(utterance.text, index), spoken, usual)
        return ranked or [spoken or usual or "en"]

    async def _find_spoken(self, utterance: Utterance, index: HomeIndex) -> str | None:
        """Return the language of the last turns that tell one."""
        turns = await utterance.dialogue.list_recent(MAX_TURNS)
        for turn in reversed(turns[-MAX_TOLD_LANGUAGES:]):
            if (given := _base(turn.request.language)) in self._languages:
                return given
            message = turn.request.message[:MAX_CHARS]
            if message not in self._spoken:
                if len(self._spoken) >= MAX_REMEMBERED:
                    self._spoken.clear()
                self._spoken[message] = recognize_language(await self._measure(message, index))
            if (found := self._spoken[message]) is not None:
                return found
        return None

    async def _measure(self, text: str, index: HomeIndex) -> dict[str, float]:
        """Return how much a text is in each language."""
        readers = {each: await self._load(each, index) for each in self._languages}
        return {language: reader.measure_likeness(text) for language, (reader, _) in readers.items()}

    async def _load(self, language: str, index: HomeIndex) -> tuple[SentenceReader, HomeWords]:
        cached = self._readers.get(language)
        if cached is None or cached[0] is not index:
            async with self._lock:
                cached = self._readers.get(language)
                if cached is None or cached[0] is not index:
                    reader, words = await asyncio.to_thread(_build_reader, language, index, self._languages)
                    cached = self._readers[language] = (index, reader, words)
        return cached[1], cached[2]

    async def _reply_to(
        self,
        utterance: Utterance,
        sentence: Sentence,
        index: HomeIndex,
        reader: SentenceReader,
        words: HomeWords,
    ) -> Reply | None:
        turns = await utterance.dialogue.list_recent(MAX_TURNS)
        now = self._clock.now().astimezone(self._time_zone)
        cancelled = await utterance.dialogue.list_cancelled(MAX_TURNS)
        requests = keep_requests(sentence, reader)
        kept = requests or sentence
        situation = Situation(
            utterance,
            # A model understands what a remark asks for.
            kept if utterance.has_model else leave_out_remarks(kept, reader),
            reader,
            choose_writer(reader.lexicon.language),
            words,
            index,
            None if index is _NO_HOME else self._home,
            now,
            _find_area(utterance.area, index),
        )
        if index is _NO_HOME:
            return await answer_talk(situation) or self._miss_home(situation)
        topics = read_topics(situation, turns, cancelled)
        reply = await reply_to_sentence(situation, topics, turns)
        is_refused = (
            reply is not None and reply.is_guess and not is_question(kept.text, reader.lexicon.language)
        )
        if requests is None and reply is not None and (is_refused or _acts(reply)):
            is_guess = reply.is_guess or utterance.has_model
            asks = asks_ability(kept.text, reader.lexicon.language) and not reply.is_guess
            return Reply(
                situation.writer.say("command.can" if asks else "command.no_request"), is_guess=is_guess
            )
        if reply is not None and utterance.has_model and _is_for_model(sentence):
            return replace(reply, is_guess=True)
        return reply

    def _miss_home(self, situation: Situation) -> Reply | None:
        """Say that the home cannot be reached, if the sentence is about a home that exists."""
        is_about_home = any(match.kind in _ABOUT_HOME for match in situation.sentence.matches)
        if self._home is None or not is_about_home:
            return None
        return Reply(situation.writer.say("cannot.reach_home"), is_guess=True)


def _acts(reply: Reply) -> bool:
    """Return whether a reply acts on the home, or offers to."""
    is_call = any(call.tool not in (REMEMBER_TOOL, FORGET_TOOL) for call in reply.calls)
    return is_call or (reply.topic is not None and reply.topic["kind"] == "offer")


def _is_for_model(sentence: Sentence) -> bool:
    """Return whether a sentence has words that a language model understands better."""
    return bool(sentence.find("soft") or sentence.find("model"))


def _make_answer(reply: Reply, language: str | None) -> Answer:
    if reply.calls:
        calls = tuple(_make_call(n, call) for n, call in enumerate(reply.calls, 1))
        return Answer(reply.text, tool_calls=calls, local=True, topic=reply.topic, language=language)
    answer = make_local_answer(reply.text, reply.citations)
    return replace(answer, topic=reply.topic, language=language)


def _make_call(n: int, call: PlannedCall) -> dict[str, Any]:
    arguments = json.dumps(call.arguments, ensure_ascii=False)
    return {"id": f"local-{n}", "type": "function", "function": {"name": call.tool, "arguments": arguments}}


def _find_area(name: str | None, index: HomeIndex) -> str | None:
    if name is None:
        return None
    wanted = name.casefold()
    for area in index.areas.values():
        if wanted in (area.id.casefold(), area.name.casefold(), *(a.casefold() for a in area.aliases)):
            return area.id
    return None


def _base(language: str | None) -> str | None:
    return language.lower().replace("_", "-").partition("-")[0] if language else None


def _has_lexicon(language: str) -> bool:
    return (files("sash") / "data" / "words" / f"{language}.toml").is_file()


def _build_reader(
    language: str, index: HomeIndex, languages: Sequence[str]
) -> tuple[SentenceReader, HomeWords]:
    # Names are in the language of the home, or in English, whatever language is spoken.
    named = dict.fromkeys((language, _base(index.language) or "en", "en"))
    lexicons = [load_lexicon(name) for name in named if name in languages]
    words = HomeWords(index, lexicons)
    return SentenceReader(load_lexicon(language), words), words
