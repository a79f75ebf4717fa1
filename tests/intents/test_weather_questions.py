"""The weather, now and in the forecast."""

import pytest

from sash.intents.weather import answer_weather_question
from tests.intents.everyday import Talk


async def ask(talk: Talk, text: str, **changes: object) -> str | None:
    reply = await answer_weather_question(talk.situate(text, **changes))  # type: ignore[arg-type]
    return reply.text if reply else None


@pytest.fixture(autouse=True)
def weather(talk: Talk) -> None:
    talk.home.set_state("weather.home", "cloudy")
    talk.home.set_state("sensor.outdoor_temperature", "14.4")


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("what's the weather like?", "It is cloudy, 14 degrees."),
        ("is it raining?", "No, it is cloudy, 14 degrees."),
        ("will it rain tomorrow?", "No, tomorrow it will be partly cloudy, 7 to 13 degrees."),
        ("what will the weather be on monday", "On Monday it will be rainy, 6 to 12 degrees, 4.2 millimetres of rain."),
        ("how warm will it get tomorrow?", "Tomorrow it will be 7 to 13 degrees."),
        ("do I need an umbrella on monday?", "Yes, on Monday it will be rainy, 6 to 12 degrees, 4.2 millimetres of rain."),
        ("weather at the weekend", "Today partly cloudy, 6 to 16 degrees, 4.2 millimetres of rain; tomorrow partly cloudy, 7 to 13 degrees."),
        ("will it freeze tomorrow", "No, tomorrow it will be 7 to 13 degrees."),
        ("is it going to snow this week", "The forecast for the next few days does not show that."),
        ("when will it rain?", "Today it will be rainy, 6 to 16 degrees, 4.2 millimetres of rain."),
        ("what's the weather on friday", "The forecast does not go that far."),
    ],
)  # fmt: skip
async def test_the_weather_is_told_in_one_sentence(talk: Talk, text: str, answer: str) -> None:
    assert await ask(talk, text) == answer


async def test_rain_now_is_a_yes(talk: Talk) -> None:
    talk.home.set_state("weather.home", "pouring")
    assert await ask(talk, "is it raining") == "Yes, it is pouring with rain, 14 degrees."


async def test_rain_later_today_is_found_in_the_hours(talk: Talk) -> None:
    answer = await ask(talk, "will it rain today?") or ""
    assert answer.startswith("Yes, today it will be rainy")


async def test_and_on_monday_goes_on_about_the_weather(talk: Talk) -> None:
    assert await ask(talk, "and on monday?") is None
    answer = await ask(talk, "and on monday?", focus_ids=("weather.home",)) or ""
    assert answer.startswith("On Monday it will be rainy")


@pytest.mark.parametrize(
    "text",
    [
        "how warm is it outside?",
        "how warm is it in the bedroom",
        "how warm will the living room get tomorrow",
        "did it rain yesterday",
        "what was the weather like yesterday",
        "tell me when it rains",
        "close the blinds if it rains",
        "what's the weather in paris",
    ],
)
async def test_other_questions_are_left_to_others(talk: Talk, text: str) -> None:
    assert await ask(talk, text) is None
