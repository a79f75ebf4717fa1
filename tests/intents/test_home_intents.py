"""The rules of home intents: names, areas, languages, results and odd input."""

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sash.intents.home_intents import MAX_CHARS
from sash.ports.home import Entity
from sash.ports.intents import LocalCallResult
from tests.intents.spoken_home import House, made, make_index, make_state


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
        "not done: I am not allowed to control devices.",
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


async def test_the_language_of_the_house_is_understood_beside_that_of_the_browser() -> None:
    house = House(make_index(language="en"), language="de")
    assert await house.says("is the kitchen light on?") == "Yes"
    assert await house.says("ist das Küchenlicht an?") == "Ja"


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
