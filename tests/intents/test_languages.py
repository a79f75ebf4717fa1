"""Every language of home-assistant-intents."""

import gc
import random
import re
from collections.abc import Iterator
from itertools import islice

import pytest
from hassil.intents import IntentData, RangeSlotList, TextSlotList
from hassil.sample import sample_sentence
from home_assistant_intents import get_languages

from sash.intents.commands import COMMANDS
from sash.intents.grammar import Grammar, find_language, load_grammar
from sash.intents.home_names import HomeNames
from sash.intents.question_detection import is_polite_request, is_question
from sash.intents.questions import QUESTIONS
from sash.intents.replies import DEFAULT_REPLY, ReplyWriter, SpokenState
from tests.intents.spoken_home import NOW, House, make_index

# Languages whose grammar has no sentence that switches a light by its name.
WITHOUT_A_LIGHT: frozenset[str] = frozenset()
# How many sentences of a template are looked at.
SAMPLES = 16
ON_OFF = {"HassTurnOn": "light.turn_on", "HassTurnOff": "light.turn_off"}

INDEX = make_index()
NAMES = HomeNames(INDEX)


def blocks(grammar: Grammar) -> Iterator[tuple[str, IntentData]]:
    """Return all blocks of sentences, each with the name of its intent."""
    return ((intent.name, block) for intent in grammar.sentences.intents.values() for block in intent.data)


def sentences(grammar: Grammar, name: str | None = None, every: int = 1) -> Iterator[tuple[str, str]]:
    """Return one sentence of every nth block of a grammar with its intent, always the same ones.

    The blocks are those that speak of entities that the house has, or of the light of this name.
    """
    chance = random.Random(grammar.language)
    whole = grammar.sentences
    for intent, block in islice(blocks(grammar), None, None, every):
        domains = block.requires_context.get("domain")
        if "Timer" in intent or (name and (intent not in ON_OFF or "light" not in (domains or ()))):
            continue
        called = [
            entity.name
            for entity in INDEX.entities.values()
            if (domains is None or entity.domain in domains) and name in (None, entity.name)
        ]
        if not called:
            continue
        lists = {
            **whole.slot_lists,
            "name": TextSlotList.from_strings(called, allow_template=False),
            "area": TextSlotList.from_strings(["Kitchen"]),
            "floor": TextSlotList.from_strings(["Ground Floor"]),
        }
        rules = {**whole.expansion_rules, **block.expansion_rules}
        template = chance.choice(block.sentences)
        sampled = list(islice(sample_sentence(template, lists, rules, expand_ranges=False), SAMPLES))
        if sampled:
            yield (
                intent,
                re.sub(r"\{(\w+)[^}]*\}", lambda found: _filled(grammar, found[1]), chance.choice(sampled)),
            )


def _filled(grammar: Grammar, called: str) -> str:
    return "50" if isinstance(grammar.sentences.slot_lists[called], RangeSlotList) else "home"


@pytest.fixture(scope="module", params=get_languages())
def grammar(request: pytest.FixtureRequest) -> Iterator[Grammar]:
    yield load_grammar(request.param)
    # A loaded grammar stays in memory, and all languages together need a gigabyte.
    load_grammar.cache_clear()
    gc.unfreeze()


async def test_a_light_can_be_switched_in_every_language(grammar: Grammar) -> None:
    language = grammar.language
    house = House(language=language)
    done = set()
    for intent, text in sentences(grammar, "Kitchen Light"):
        calls = await house.calls(text) if not is_question(text, language) else None
        if calls is not None:
            assert calls == [(ON_OFF[intent], ["light.kitchen"], {})], text
            done.add(intent)
            assert await house.does(text), text
    assert bool(done) is (language not in WITHOUT_A_LIGHT)


async def test_no_question_of_a_grammar_calls_anything(grammar: Grammar) -> None:
    house = House(language=grammar.language, area="kitchen")
    for intent, text in sentences(grammar, every=3):
        answer = await house.hear(text)
        if intent not in COMMANDS:
            assert answer is None or not answer.tool_calls, text
        if intent not in QUESTIONS:
            assert answer is None or answer.tool_calls, text
        asked = await house.hear(f"{text}?")
        # "Mi spegni la luce?" is a polite request.
        assert asked is None or not asked.tool_calls or is_polite_request(text), text


def test_no_answer_of_a_language_fails(grammar: Grammar) -> None:
    """A template that fails would be replaced by names and states."""
    replies = ReplyWriter(grammar)
    attributes = {"temperature": 20.5, "current_temperature": 21.5, "temperature_unit": "°C", "wind_speed": 3}
    lamp = SpokenState("light.kitchen", "Kitchen Light", "on", {**attributes, "device_class": "blind"})
    slots = {
        "time": NOW.time(),
        "date": NOW.date(),
        "name": "Kitchen Light",
        "area": "Kitchen",
        "floor": "First",
    }
    slots |= {"state": "on", "device_class": "blind", "item": "milk", "temperature": "21", "brightness": "50"}
    slots |= {"color": "red", "domain": "light", "position": "40", "volume_level": "30", "percentage": "50"}
    for intent, block in blocks(grammar):
        if intent in COMMANDS or intent in QUESTIONS:
            template = replies.get_template(intent, block.response or "default")
            if template is not None:
                template.render(
                    slots={"volume_step": "up", "fan_mode": "low", **slots},
                    state=lamp,
                    query={"matched": [lamp], "unmatched": []},
                    state_attr=lambda _, name: attributes.get(name),
                )
            elif intent != "HassNevermind":
                pytest.fail(f"{intent} has no answer {block.response}")


@pytest.mark.parametrize("language", ["en", "de", "zh-CN", "tr"])
def test_narrowing_a_grammar_and_the_names_loses_no_meaning(language: str) -> None:
    grammar = load_grammar(language)
    recognised = 0
    for _, text in sentences(grammar, every=3):
        for area in (None, NAMES.find_area("kitchen")):
            wanted = grammar.interpret(text, lambda _: NAMES.list_all(), area, narrow=False)
            assert grammar.interpret(text, NAMES.find_in, area) == wanted, text
            recognised += bool(wanted)
    assert recognised > 10


@pytest.mark.parametrize(
    ("called", "language"),
    [
        ("en", "en"),
        ("en-US", "en"),
        ("EN_gb", "en"),
        ("de-AT", "de"),
        ("de-ch", "de-CH"),
        ("pt-br", "pt-BR"),
        ("pt-PT", "pt"),
        ("zh", "zh-CN"),
        ("zh-Hant", "zh-TW"),
        ("zh-Hans-CN", "zh-CN"),
        ("zh_HK", "zh-HK"),
        ("no", "nb"),
        ("nn-NO", "nb"),
        ("sr-Latn-RS", "sr-Latn"),
        ("tlh", None),
        ("", None),
        ("-", None),
    ],
)
def test_a_language_has_many_names(called: str, language: str | None) -> None:
    assert find_language(called) == language


def test_a_grammar_is_read_once() -> None:
    assert load_grammar("en") is load_grammar("en")
    with pytest.raises(ValueError, match="no language"):
        load_grammar("tlh")


def test_where_a_language_has_nothing_to_say_it_is_ok() -> None:
    grammar = load_grammar("en")
    [interpretation] = grammar.interpret("never mind", NAMES.find_in)
    assert ReplyWriter(grammar).write(interpretation, {}) == DEFAULT_REPLY
