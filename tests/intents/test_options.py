"""Options that a command names: settings of lights, and sources of players, beside the things themselves."""

import pytest

from sash.intents.acting.planner import Planner
from sash.intents.answers.writer import choose_writer
from sash.intents.home_words import HomeWords
from sash.intents.sentence.reader import SentenceReader
from sash.intents.situation import Situation
from sash.intents.words.lexicon import load_lexicon
from sash.ports.home import Entity
from sash.ports.intents import Utterance
from sash.values.sessions import Session
from tests.intents.spoken_home import NOW, TOOLS, House, make_index, make_state

POWER_ON = "select.kitchen_light_power_on"
EFFECT = "select.kitchen_light_effect"
CANDLE = "light.candle"
STEREO = "media_player.stereo"
MORE = (
    (
        Entity(POWER_ON, "Kitchen Light Power-on behavior", "kitchen"),
        make_state(POWER_ON, "off", options=["off", "previous", "on"]),
    ),
    (
        Entity(EFFECT, "Kitchen Light Effect", "kitchen"),
        make_state(EFFECT, "Candle", options=["Candle", "Disco"]),
    ),
    (Entity(CANDLE, "Candle", "kitchen"), make_state(CANDLE, "off", supported_color_modes=["onoff"])),
    (
        Entity(STEREO, "Stereo", "hall"),
        make_state(STEREO, "on", source_list=["On", "Play", "Jazz radio"]),
    ),
)


def plan(text: str, language: str = "en") -> list[tuple[str, list[str], dict[str, object]]]:
    """Return the calls for a command in a home with some settings and sources."""
    index = make_index(*MORE)
    lexicon = load_lexicon(language)
    words = HomeWords(index, [lexicon])
    reader = SentenceReader(lexicon, words)
    utterance = Utterance(text, Session("s", "o", NOW, NOW), TOOLS)
    sentence = reader.read(text)
    situation = Situation(
        utterance,
        sentence,
        reader,
        choose_writer(language),
        words,
        index,
        House(index),
        NOW,  # type: ignore[arg-type]
    )
    planner = Planner(situation)
    calls = [call for clause in reader.read_clauses(sentence) for call in planner.plan(clause).calls]
    return [(c.arguments["service"], c.arguments["entity_ids"], c.arguments["data"]) for c in calls]


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("en", "turn on the kitchen light"),
        ("en", "switch the kitchen light on"),
        ("de", "Küchenlicht an"),
        ("fr", "allume la lampe de cuisine"),
        ("es", "enciende la luz de cocina"),
        ("it", "accendi la luce cucina"),
    ],
)
def test_a_light_with_a_setting_called_on_is_turned_on_itself(language, text):
    assert plan(text, language) == [("light.turn_on", ["light.kitchen"], {})]


def test_a_word_of_a_thing_means_the_thing_and_no_setting_of_another_one():
    assert plan("turn on the candle in the kitchen") == [("light.turn_on", [CANDLE], {})]


def test_a_player_with_a_source_called_on_is_turned_on_itself():
    assert plan("turn on the stereo") == [("media_player.turn_on", [STEREO], {})]


def test_an_option_is_set_if_nothing_else_is_meant():
    assert plan("set the kitchen light effect to disco") == [
        ("select.select_option", [EFFECT], {"option": "Disco"})
    ]
    assert plan("play jazz on the stereo") == [
        ("media_player.select_source", [STEREO], {"source": "Jazz radio"})
    ]
