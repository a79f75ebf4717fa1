"""Long names, many languages and long sentences of one owner do not occupy the program."""

import asyncio
import gc
import threading
from datetime import UTC, datetime

import pytest

from sash.app.assembly import make_runtime
from sash.app.settings import Settings
from sash.errors import InvalidInput
from sash.home import fuzzy_search
from sash.intents import home_intents
from sash.intents.home_intents import HomeIntents
from sash.ports.intents import Utterance
from sash.values.clock import SystemClock
from sash.values.sessions import Session
from tests.surfaces.serving import WAIT_S

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
async def runtime(tmp_path):
    async with make_runtime(Settings(data=tmp_path, store="memory")) as runtime:
        await runtime.home_ready(timeout_s=WAIT_S)
        yield runtime


def make_utterance(text, owner, language="en"):
    return Utterance(text, Session(owner, owner, NOW, NOW), frozenset(), (), language=language)


async def test_a_direct_call_takes_no_arguments_of_megabytes(runtime):
    with pytest.raises(InvalidInput, match="32,768"):
        await runtime.call_tool("get_states", {"entity_ids": ["é " * 500_000]})


async def test_a_long_name_is_read_only_at_its_beginning(runtime, monkeypatch):
    read = []
    monkeypatch.setattr(fuzzy_search, "split_words", lambda text: read.append(len(text)) or text.split())
    found = await runtime.call_tool("get_states", {"entity_ids": ["a " * 15_000]})
    assert max(read) <= fuzzy_search.MAX_QUERY_CHARS + 1
    assert len(found["not_found"][0]) < 300


async def test_an_owner_uses_one_thread_for_long_sentences(runtime, monkeypatch):
    intents = HomeIntents(runtime.home, clock=SystemClock())
    await intents.warm_up("en")
    running, most, lock = set(), [], threading.Lock()

    async def follow(work, *arguments):
        with lock:
            running.add(id(arguments))
            most.append(len(running))
        await asyncio.sleep(0)
        running.discard(id(arguments))
        return []

    monkeypatch.setattr(home_intents.asyncio, "to_thread", follow)
    text = "turn on the " + "kitchen light and the " * 5
    await asyncio.gather(*(intents.understand(make_utterance(text, "greedy")) for _ in range(10)))
    assert max(most) == 1 and len(most) == 10


async def test_an_owner_with_many_languages_delays_others_by_one_language_only(runtime, monkeypatch):
    intents = HomeIntents(runtime.home, clock=SystemClock(), max_languages=2)
    loaded, may_load = [], asyncio.Semaphore(0)
    grammar = home_intents.load_grammar("en")

    async def load(work, *arguments):
        if work is not home_intents.load_grammar:
            return work(*arguments)
        await may_load.acquire()
        loaded.append(arguments[0])
        return grammar

    monkeypatch.setattr(home_intents.asyncio, "to_thread", load)
    languages = ["de", "fr", "es", "it", "nl", "pl"]
    greedy = [
        asyncio.create_task(intents.understand(make_utterance("hello", "greedy", language)))
        for language in languages
    ]
    await asyncio.sleep(0)
    victim = asyncio.create_task(intents.understand(make_utterance("hello", "victim", "en")))
    for _ in range(2):
        may_load.release()
    async with asyncio.timeout(WAIT_S):
        await victim
    assert loaded == ["de", "en"]
    for _ in languages:
        may_load.release()
    await asyncio.gather(*greedy)


async def test_an_owner_loads_only_some_languages_besides_that_of_the_home(runtime, monkeypatch):
    intents = HomeIntents(runtime.home, clock=SystemClock(), max_languages=5)
    loaded = []
    grammar = home_intents.load_grammar("en")
    monkeypatch.setattr(home_intents, "load_grammar", lambda language: loaded.append(language) or grammar)
    for owner, languages in (
        ("greedy", "de fr es it nl de"),
        ("friend", "it de nl pl"),
        ("late", "en de pt"),
    ):
        for language in languages.split():
            await intents.understand(make_utterance("hello", owner, language))
    # A sentence in a language that was not loaded is tried in the language of the home, "en".
    assert loaded == ["de", "fr", "es", "en", "it", "nl"]


async def test_no_full_garbage_collection_visits_a_grammar(runtime):
    grammar = home_intents.load_grammar("en")
    gc.collect()
    assert grammar not in gc.get_objects()
