"""Sentences about the home: their calls, their answers, and those left to the model."""

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sash.intents import home_intents
from sash.intents.grammar import Grammar, load_grammar
from sash.intents.home_intents import MAX_CHARS
from sash.ports.home import Entity
from sash.ports.intents import LocalCallResult
from tests.intents.spoken_home import House, made, make_index, make_state

ToolCalls = list[tuple[str, list[str], dict[str, Any]]]

LIGHTS = ["light.kitchen", "light.spots", "light.bedside", "light.desk"]

COMMANDS: dict[str, ToolCalls] = {
    "turn on the kitchen light": [("light.turn_on", ["light.kitchen"], {})],
    "Kitchen Spots off.": [("light.turn_off", ["light.spots"], {})],
    "please switch the coffee machine on": [("switch.turn_on", ["switch.coffee"], {})],
    "turn on guest mode": [("input_boolean.turn_on", ["input_boolean.guests"], {})],
    "turn on the lights in the kitchen": [("light.turn_on", ["light.kitchen", "light.spots"], {})],
    "turn off the upstairs lights": [("light.turn_off", ["light.bedside", "light.desk"], {})],
    "turn off all the lights": [("light.turn_off", LIGHTS, {})],
    "turn on the lamp in the office": [("light.turn_on", ["light.desk"], {})],
    "turn on the fans in the bedroom": [("fan.turn_on", ["fan.bedroom"], {})],
    "set bedroom fan speed to 50%": [("fan.set_percentage", ["fan.bedroom"], {"percentage": 50})],
    "set the kitchen light to 50%": [("light.turn_on", ["light.kitchen"], {"brightness_pct": 50})],
    "set the kitchen brightness to twenty percent": [
        ("light.turn_on", ["light.kitchen", "light.spots"], {"brightness_pct": 20})
    ],
    "set kitchen to red": [("light.turn_on", ["light.kitchen"], {"color_name": "red"})],
    "set kitchen light temperature to 3000 kelvin": [
        ("light.turn_on", ["light.kitchen"], {"color_temp_kelvin": 3000})
    ],
    "open the garage door": [("cover.open_cover", ["cover.garage"], {})],
    "close the bedroom blinds": [("cover.close_cover", ["cover.left"], {})],
    "set left blind to 40%": [("cover.set_cover_position", ["cover.left"], {"position": 40})],
    "close the water valve": [("valve.close_valve", ["valve.water"], {})],
    "lock the front door": [("lock.lock", ["lock.front"], {})],
    "unlock the front door": [("lock.unlock", ["lock.front"], {})],
    "turn on the TV": [("media_player.turn_on", ["media_player.tv"], {})],
    "pause the TV": [("media_player.media_pause", ["media_player.tv"], {})],
    "pause the music in the living room": [("media_player.media_pause", ["media_player.tv"], {})],
    "next track on the TV": [("media_player.media_next_track", ["media_player.tv"], {})],
    "previous track on the TV": [("media_player.media_previous_track", ["media_player.tv"], {})],
    "resume TV": [("media_player.media_play", ["media_player.tv"], {})],
    "mute the TV": [("media_player.volume_mute", ["media_player.tv"], {"is_volume_muted": True})],
    "unmute the TV": [("media_player.volume_mute", ["media_player.tv"], {"is_volume_muted": False})],
    "set TV volume to 40%": [("media_player.volume_set", ["media_player.tv"], {"volume_level": 0.4})],
    "increase TV volume": [("media_player.volume_up", ["media_player.tv"], {})],
    "decrease TV volume by 10%": [("media_player.volume_set", ["media_player.tv"], {"volume_level": 0.2})],
    "set the temperature in the living room to 21.5": [
        ("climate.set_temperature", ["climate.living_room"], {"temperature": 21.5})
    ],
    "set thermostat fan to low": [("climate.set_fan_mode", ["climate.living_room"], {"fan_mode": "low"})],
    "movie time": [("scene.turn_on", ["scene.movie"], {})],
    "run good night": [("script.turn_on", ["script.night"], {})],
    "press the bell": [("button.press", ["button.bell"], {})],
    "start Robbie": [("vacuum.start", ["vacuum.robbie"], {})],
    "return Robbie to base": [("vacuum.return_to_base", ["vacuum.robbie"], {})],
    "vacuum the ground floor": [("vacuum.start", ["vacuum.robbie"], {})],
    "start mowing": [("lawn_mower.start_mowing", ["lawn_mower.clippy"], {})],
    "dock the mower": [("lawn_mower.dock", ["lawn_mower.clippy"], {})],
    "add oat milk (1 l) to my shopping list": [
        ("todo.add_item", ["todo.shopping_list"], {"item": "oat milk (1 l)"})
    ],
    "add call Bob to my work list": [("todo.add_item", ["todo.work"], {"item": "call Bob"})],
    "complete milk on my shopping list": [
        ("todo.update_item", ["todo.shopping_list"], {"item": "milk", "status": "completed"})
    ],
    "remove milk from my work list": [("todo.remove_item", ["todo.work"], {"item": "milk"})],
}

QUESTIONS = {
    "is the kitchen light on?": "Yes",
    "is the kitchen light on": "Yes",
    "is the kitchen light off?": "No, on",
    "is the front door locked?": "No, unlocked",
    "is the hall window closed?": "No, open",
    "are all the lights off?": "No, Kitchen Light is not off (Pantry: unavailable)",
    "are any lights on in the kitchen?": "Yes, Kitchen Light",
    "are any lights on upstairs?": "No",
    "which lights are on?": "Kitchen Light",
    "how many lights are off?": "3",
    "are all the curtains open?": "Yes",
    "what is the outside": "Outside is 12.35 °C",
    "how is the front door": "Front door is unlocked",
    "what's the temperature in the living room?": "21.5 degrees",
    "how warm is it in the kitchen?": "20.1 degrees",
    "what is the temperature of the thermostat?": "21.5 degrees",
    "where is Anna?": "Anna is away",
    "is Anna home?": "No, not home",
    "is everyone home?": "No, Anna is not home",
    "what's the weather like?": "20 °C and sunny",
    "what time is it?": "2:07 PM",
    "what's the date?": "March 5th, 2026",
    "never mind": "OK.",
    "hello": "Hello from Home Assistant.",
}

FOR_THE_MODEL = [
    "",
    "   ",
    "turn on the unicorn",
    "turn on the lights",  # where?
    "turn on the lamp",  # which one?
    "turn on the pantry",  # it is not available
    "turn on the right blind",
    "open the right blind",  # it cannot
    "set spots to red",  # nor can they
    "set the lamp in the office to 50%",
    "set thermostat fan to high",
    "don't turn on the kitchen light",
    "turn on the kitchen light and the spots",
    "turn on the kitchen light when I come home",
    "turn off the kitchen light in five minutes",
    "add bread, eggs and milk to my shopping list",
    "is Anna in a good mood?",
    "is the pantry on?",
    "all lights off",
    "set a timer for five minutes",
    "broadcast dinner is ready",
    "play jazz on the TV",
    "clean the kitchen",
    "who made you?",
    "where does my data go?",
    "tell me a joke about the kitchen light",
]

NEVER_AN_ORDER = {
    "en": [
        "kitchen light on?",
        "the kitchen light on?",
        "turn on the kitchen light?",
        "kitchen light to 50%?",
        "movie time?",
        "lock the front door?!",
        "turn on the kitchen light❓",
        "can you tell me if the kitchen light is on?",
        "could you check if the front door is locked?",
        "do you know if the kitchen light is on",
        "is the kitchen light on or off",
        "what happens if I turn on the kitchen light?",
    ],
    "de": [
        "Küchenlicht an?",
        "Küchenlicht noch an?",
        "Noch Licht an in der Küche?",
        "Noch Licht an in der Küche",
        "Licht in der Küche an?",
        "schalte das Küchenlicht ein?",
        "Was ist auf der Einkaufsliste",
        "Was kommt auf die Einkaufsliste",
        "Was steht auf die Liste Work",
        "Kannst du mir sagen ob das Küchenlicht an ist?",
    ],
    "fr": [
        "la lampe de cuisine est allumée ?",
        "est-ce que la lampe de cuisine est allumée",
        "allume la lampe de cuisine ?",
    ],
    "es": ["¿enciende la luz de cocina?", "¿está encendida la luz de cocina", "luz de cocina encendida?"],
    "it": ["accendi luce cucina?", "dimmi luce cucina accesa", "la luce cucina è accesa?"],
    "pl": ["sprawdź Kitchen Light", "włącz Kitchen Light?", "czy Kitchen Light jest włączony"],
    "ru": [
        "включи кухонный свет?",
        "скажи включи кухонный свет",
        "можешь сказать включи кухонный свет",
        "включён ли кухонный свет",
    ],
    "zh-CN": ["打开厨房灯？", "厨房灯开着吗", "请问厨房灯打开"],
    "el": ["άναψε Kitchen Light;"],
    "ar": ["شغل Kitchen Light؟"],
}

REQUESTS = {
    "en": [
        "can you turn on the kitchen light?",
        "Could you please turn on the kitchen light?",
        "would you turn on the kitchen light, please?",
        "can you turn the kitchen light on for me",
    ],
    "de": [
        "Kannst du das Küchenlicht einschalten?",
        "Könntest du bitte das Küchenlicht anmachen?",
        "würdest du mal das Küchenlicht einschalten",
    ],
    "fr": ["peux-tu allumer la lampe de cuisine ?", "est-ce que tu peux allumer la lampe de cuisine ?"],
    "es": ["¿puedes encender la luz de cocina?", "¿podrías encender la luz de cocina, por favor?"],
    "it": ["puoi accendere luce cucina?", "potresti accendere luce cucina per favore?"],
    "ru": ["можешь включить кухонный свет?"],
    "nl": ["kun je Kitchen Light aanzetten?"],
    "af": ["kan jy asseblief skakel die Kitchen Light aan?"],
}


@pytest.fixture
def house() -> House:
    return House()


@pytest.mark.parametrize("text", COMMANDS)
async def test_a_command_calls_services(house: House, text: str) -> None:
    assert await house.calls(text) == COMMANDS[text]


@pytest.mark.parametrize("text", QUESTIONS)
async def test_a_question_is_answered_at_once(house: House, text: str) -> None:
    assert await house.says(text) == QUESTIONS[text]


@pytest.mark.parametrize("text", FOR_THE_MODEL)
async def test_what_is_not_sure_is_for_the_model(house: House, text: str) -> None:
    assert await house.hear(text) is None


@pytest.mark.parametrize(
    ("language", "text"), [(k, text) for k, texts in NEVER_AN_ORDER.items() for text in texts]
)
async def test_a_question_never_calls_anything(house: House, language: str, text: str) -> None:
    house.language, house.area = language, "kitchen"
    answer = await house.hear(text)
    assert answer is None or not answer.tool_calls


@pytest.mark.parametrize(("language", "text"), [(k, text) for k, texts in REQUESTS.items() for text in texts])
async def test_a_request_is_an_order_in_the_form_of_a_question(
    house: House, language: str, text: str
) -> None:
    house.language = language
    assert await house.calls(text) == [("light.turn_on", ["light.kitchen"], {})]


@pytest.mark.parametrize("text", COMMANDS)
async def test_the_same_words_with_a_question_mark_are_no_order(house: House, text: str) -> None:
    answer = await house.hear(f"{text.rstrip('.')}?")
    assert answer is None or not answer.tool_calls


async def test_where_the_speaker_is_says_which_lights(house: House) -> None:
    house.area = "bedroom"
    assert await house.calls("turn on the lights") == [("light.turn_on", ["light.bedside"], {})]
    assert await house.calls("turn on the lamp") == [("light.turn_on", ["light.bedside"], {})]
    assert await house.calls("open the blinds") == [("cover.open_cover", ["cover.left"], {})]
    house.area = "Office"
    assert await house.calls("turn on the lamp") == [("light.turn_on", ["light.desk"], {})]
    house.area = "lounge"
    assert await house.calls("turn on the lamp") is None
    assert await house.says("what's the temperature?") == "21.5 degrees"
    assert await house.calls("pause") == [("media_player.media_pause", ["media_player.tv"], {})]
    house.area = "nowhere"
    assert await house.calls("turn on the lights") is None


async def test_an_order_for_two_kinds_of_things_is_two_calls() -> None:
    radio = (
        Entity("media_player.deck", "Deck", "living_room"),
        make_state("media_player.deck", "playing", supported_features=4, volume_level=0.6),
    )
    house = House(make_index(radio), area="living_room")
    assert await house.calls("decrease the volume by 10%") == [
        ("media_player.volume_set", ["media_player.tv"], {"volume_level": 0.2}),
        ("media_player.volume_set", ["media_player.radio"], {"volume_level": 0.4}),
        ("media_player.volume_set", ["media_player.deck"], {"volume_level": 0.5}),
    ]


async def test_five_hundred_lights_are_one_call_and_more_are_two() -> None:
    many = [(Entity(f"light.{n}", f"No {n}"), make_state(f"light.{n}", "on")) for n in range(500)]
    calls = await House(make_index(*many)).calls("turn off all the lights")
    assert calls is not None
    assert [(service, len(entity_ids)) for service, entity_ids, _ in calls] == [
        ("light.turn_off", 500),
        ("light.turn_off", 4),
    ]


async def test_a_name_that_two_kinds_of_things_have_is_not_sure() -> None:
    twin = Entity("switch.spots", "Spots", "office"), make_state("switch.spots", "off")
    house = House(make_index(twin))
    assert await house.calls("turn on the spots") is None
    assert await house.says("is spots on?") is None
    house.area = "kitchen"
    assert await house.calls("turn on the spots") == [("light.turn_on", ["light.spots"], {})]


async def test_what_may_be_a_question_as_well_is_no_order() -> None:
    script = Entity("script.mind", "Never Mind"), make_state("script.mind", "off")
    house = House(make_index(script))
    assert await house.calls("run never mind") == [("script.turn_on", ["script.mind"], {})]
    assert await house.hear("never mind") is None


async def test_the_only_mower_needs_no_name_but_one_of_two_does() -> None:
    house = House()
    assert await house.calls("start mowing") is not None
    second = Entity("lawn_mower.snippy", "Snippy"), make_state("lawn_mower.snippy", "docked")
    house.index = make_index(second)
    assert await house.calls("start mowing") is None
    assert await house.calls("start Snippy") == [("lawn_mower.start_mowing", ["lawn_mower.snippy"], {})]


async def test_whole_numbers_are_whole(house: House) -> None:
    calls = await house.calls("set the kitchen light to 50%")
    assert calls
    assert repr(calls[0][2]) == "{'brightness_pct': 50}"


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("en", "Coffee Machine"),
        ("en", "the kitchen light"),
        ("en", "my coffee machine"),
        ("en", "the kitchen light please"),
        ("de", "Küchenlicht"),
        ("de", "das Küchenlicht"),
        ("es", "la luz de cocina"),
        ("fr", "la lampe de cuisine"),
    ],
)
async def test_the_bare_name_of_a_thing_is_no_order(house: House, language: str, text: str) -> None:
    """It may be the answer to "Which light shall I turn off?"."""
    house.language = language
    assert await house.calls(text) is None


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("en", "add no milk to the shopping list"),
        ("de", "setze keine Milch auf die Einkaufsliste"),
        ("nl", "zet geen melk op de boodschappenlijst"),
    ],
)
async def test_what_is_not_wanted_is_not_put_on_a_list(house: House, language: str, text: str) -> None:
    house.language = language
    assert await house.calls(text) is None


async def test_a_language_that_nobody_knows_is_that_of_the_house(house: House) -> None:
    house.language = "English"
    assert await house.calls("turn on the coffee machine")


async def test_what_is_not_exposed_has_no_name() -> None:
    secret = Entity("light.secret", "Secret", "kitchen", exposed=False), make_state("light.secret", "on")
    house = House(make_index(secret))
    assert await house.hear("turn on secret") is None
    assert await house.calls("turn on the lights in the kitchen") == [
        ("light.turn_on", ["light.kitchen", "light.spots"], {})
    ]


async def test_names_are_found_as_they_are_said() -> None:
    things = [
        "Lamp, left",
        "Straßenlicht",
        "Kid's lamp",
        "a (b) [c] {d} <e> | .*",
        "TV-Lampe",
        "ΆΝΩ",
        "İstanbul",
    ]
    more = [(Entity(f"light.x{n}", name), make_state(f"light.x{n}", "on")) for n, name in enumerate(things)]
    house = House(make_index(*more))
    for said, n in (
        ("lamp left", 0),
        ("lamp, left", 0),
        ("STRAßENLICHT", 1),
        ("kid’s lamp", 2),
        ("a (b) [c] {d} <e> | .*", 3),
        ("TV-Lampe", 4),
        ("άνω", 5),
        ("istanbul", 6),
        ("İSTANBUL", 6),
    ):
        assert await house.calls(f"turn on {said}") == [("light.turn_on", [f"light.x{n}"], {})], said


async def test_without_the_tool_nothing_is_called_but_questions_are_answered(house: House) -> None:
    assert await house.hear("turn on the kitchen light", tools=frozenset()) is None
    answer = await house.hear("is the kitchen light on?", tools=frozenset())
    assert answer is not None
    assert answer.content == "Yes"


@pytest.mark.parametrize(
    ("text", "after", "said"),
    [
        ("turn on the kitchen light", "on", "Turned on the light"),
        ("turn off the lights in the kitchen", "off", "Turned off the lights (Pantry: unavailable)"),
        ("lock the front door", "locked", "Locking"),
        ("open the bedroom blinds", "open", "Opening the blinds"),
        ("set the temperature in the living room to 21.5", "heat", "Temperature set to 21.5 degrees"),
        ("pause the music in the living room", "paused", "Paused"),
        ("add oat milk to my shopping list", "4", "Added oat milk"),
    ],
)
async def test_what_was_done_is_said(house: House, text: str, after: str, said: str) -> None:
    assert await house.does(text, after) == said
    assert await house.does(text, after, verified=None) == said


async def test_what_has_not_worked_is_explained_by_the_model(house: House) -> None:
    assert await house.does("turn on the kitchen light", "off", verified=False) is None
    for content in (
        "not done: actions are off",
        "failed: no answer",
        "[]",
        "{}",
        '{"entities": []}',
        '{"dry_run": true, "would": {"entities": []}}',
    ):
        assert await house.hear("turn on the kitchen light", LocalCallResult("call_service", content)) is None
    fine = made("light.turn_on", ["light.kitchen"], "on", house.index)
    bad = LocalCallResult("call_service", "failed: no answer")
    assert await house.hear("turn on the kitchen light", fine, bad) is None
    assert await house.hear("turn on the kitchen light", LocalCallResult("remember", fine.content)) is None


async def test_what_was_done_is_said_from_the_results_even_if_the_house_has_changed(house: House) -> None:
    text = "pause the music in the living room"
    calls = await house.calls(text)
    assert calls
    house.index.apply("media_player.tv", make_state("media_player.tv", "paused"))
    assert await house.calls(text) is None
    answer = await house.hear(text, made(*calls[0][:2], "paused", house.index))
    assert answer is not None
    assert answer.content == "Paused"


async def test_a_question_that_has_results_is_for_the_model(house: House) -> None:
    assert await house.hear("is the kitchen light on?", LocalCallResult("call_service", "{}")) is None


async def test_a_template_that_has_no_words_gives_the_states() -> None:
    odd = Entity("weather.odd", "Odd"), make_state("weather.odd", "sunny")
    index = make_index(odd)
    index.states.pop("weather.home")
    assert await House(index).says("what's the weather?") == "Odd: sunny"


async def test_the_house_is_spoken_to_in_its_own_language_or_that_of_the_speaker() -> None:
    house = House(make_index(language="de"))
    assert await house.calls("schalte das Küchenlicht aus") == [("light.turn_off", ["light.kitchen"], {})]
    assert await house.says("ist das Küchenlicht an?") == "Ja"
    house.language = "en-GB"
    assert await house.says("is the kitchen light on?") == "Yes"
    house.language = "tlh"
    assert await house.hear("is the kitchen light on?") is None


async def test_only_some_languages_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[str] = []

    def load(language: str) -> Grammar:
        loaded.append(language)
        return load_grammar(language)

    monkeypatch.setattr(home_intents, "load_grammar", load)
    house = House(max_languages=2)
    for house.language in ("en", "sw", "mn", "en", "mn", "en"):
        await house.hear("is the kitchen light on?")
    assert loaded == ["en", "sw", "mn", "en"]
    assert await house.says("is the kitchen light on?") == "Yes"


async def test_states_are_said_in_the_words_of_the_language() -> None:
    house = House(make_index(language="de"))
    assert await house.says("ist das Küchenlicht aus?") == "Nein, an"
    assert await house.says("wie ist der Zustand von Front Door") == "Front door ist nicht abgeschlossen"


async def test_a_house_that_is_away_understands_nothing(house: House) -> None:
    house.is_away = True
    await house.intents.warm_up()
    assert await house.hear("is the kitchen light on?") is None
    house.is_away = False
    assert await house.says("is the kitchen light on?") == "Yes"


async def test_names_are_read_anew_for_another_index(house: House) -> None:
    names = await house.intents.load_names(house.index)
    assert await house.hear("turn on the new one") is None
    assert await house.intents.load_names(house.index) is names
    house.index = make_index((Entity("light.new", "New One"), make_state("light.new", "off")))
    assert await house.calls("turn on the new one") == [("light.turn_on", ["light.new"], {})]
    assert await house.intents.load_names(house.index) is not names


async def test_states_are_as_fresh_as_the_index(house: House) -> None:
    assert await house.says("is the kitchen light on?") == "Yes"
    house.index.apply("light.kitchen", make_state("light.kitchen", "off"))
    assert await house.says("is the kitchen light on?") == "No, off"


async def test_many_may_speak_at_once_before_anything_is_read() -> None:
    house = House()
    said = await asyncio.gather(*(house.says("is the kitchen light on?") for _ in range(5)))
    assert said == ["Yes"] * 5


async def test_a_long_text_is_not_even_looked_at(house: House) -> None:
    assert await house.hear("turn on the kitchen light" + " please" * 40) is None
    text = "turn on the kitchen light".ljust(MAX_CHARS + 1, "!")
    assert await house.hear(text) is None
    assert await house.hear(text[:-1]) is not None


@pytest.mark.parametrize("value", [None, 3, ["en"], {}])
async def test_a_language_or_area_that_is_no_text_is_ignored(house: House, value: Any) -> None:
    house.language = house.area = value
    assert await house.says("is the kitchen light on?") == "Yes"


_words = st.sampled_from(
    [
        "turn",
        "on",
        "off",
        "the",
        "kitchen",
        "light",
        "lights",
        "is",
        "are",
        "all",
        "add",
        "milk",
        "to",
        "my",
        "list",
        "set",
        "50",
        "%",
        "?",
        ".",
        ",",
        "(",
        "[",
        "{",
        "<",
        "*",
        "\\",
        "🙂",
        "\x00",
        "\u202e",
        "ß",
        "İ",
        "灯",
        "volume",
        "temperature",
        "who",
        "where",
        "in",
        "bedroom",
        "what",
        "time",
        "play",
        "stop",
        "�",
    ]
)
_texts = st.one_of(st.text(max_size=250), st.lists(_words, max_size=40).map(" ".join))


@settings(max_examples=300, deadline=None)
@given(
    text=_texts,
    language=st.sampled_from(["en", "de", "zh-CN", "tr"]),
    area=st.sampled_from([None, "kitchen"]),
)
def test_anything_may_be_said(text: str, language: str, area: str | None) -> None:
    async def say() -> None:
        house = House(language=language, area=area)
        answer = await house.hear(text)
        assert answer is None or answer.local
        if answer is not None and answer.tool_calls:
            assert "?" not in text or text.startswith(("can you", "could you"))
        await house.hear(text, LocalCallResult("call_service", text))

    asyncio.run(say())


async def test_ten_thousand_characters_are_no_sentence(house: House) -> None:
    assert await house.hear("turn on the kitchen light " * 400) is None
