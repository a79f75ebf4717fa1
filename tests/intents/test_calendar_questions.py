"""Questions about the appointments in the calendars of a home."""

from collections.abc import AsyncIterator, Collection
from datetime import datetime
from typing import Any

import pytest

from sash.demo.simulated_home import SimulatedHome
from sash.home.live_home import LiveHome
from sash.intents.calendar import answer_calendar_question
from sash.ports.home import Entity, Layout, State
from sash.testing import FakeClock
from tests.intents.everyday import NOW, Talk

CALENDAR = "calendar.family"
EVENTS = [
    {"summary": "Christmas tree collection", "start": "2026-01-17", "end": "2026-01-18"},
    {"summary": "Choir", "start": "2026-01-17T19:00:00+00:00", "end": "2026-01-17T21:00:00+00:00"},
    {"summary": "Dentist", "start": "2026-01-18T10:30:00+00:00", "end": "2026-01-18T11:00:00+00:00"},
    {"summary": "Parents' evening", "start": "2026-01-22T19:00:00+00:00", "end": "2026-01-22T20:00:00+00:00"},
]


class HomeWithCalendar(SimulatedHome):
    """A home whose only entity is a calendar."""

    async def call_service(
        self, service: str, data: dict[str, Any], entity_ids: Collection[str] = (), **options: Any
    ) -> dict[str, Any] | None:
        assert service == "calendar.get_events"
        start, end = (datetime.fromisoformat(data[f"{side}_date_time"]) for side in ("start", "end"))
        found = [event for event in EVENTS if _read(event["start"]) < end and _read(event["end"]) > start]
        return {entity_id: {"events": found} for entity_id in entity_ids}


def _read(text: str) -> datetime:
    at = datetime.fromisoformat(text)
    return at if at.tzinfo else at.replace(tzinfo=NOW.tzinfo)


@pytest.fixture
async def calendar() -> AsyncIterator[Talk]:
    layout = Layout("Home", (Entity(CALENDAR, "Family"),))
    home = HomeWithCalendar(layout, [State(CALENDAR, "off", {}, NOW, NOW)], clock=FakeClock(NOW))
    live = LiveHome(home)
    await live.open()
    await live.wait_until_ready()
    yield Talk(home, live)
    await live.close()


async def ask(talk: Talk, text: str) -> str | None:
    reply = await answer_calendar_question(talk.situate(text))
    return reply.text if reply else None


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("what's on my calendar today?", "Today: Christmas tree collection and Choir at 19:00."),
        ("do I have any appointments tomorrow?", "Tomorrow: Dentist at 10:30."),
        ("am I free on monday?", "There is nothing on the calendar the day after tomorrow."),
        ("what is my next appointment?", "Next is Choir, today at 19:00."),
        ("when is my dentist appointment?", "Next is Dentist, tomorrow at 10:30."),
        ("when is my hairdresser appointment?", "I cannot find that appointment in the calendar."),
        ("which appointments do I have next week?", "Parents' evening (on Thursday at 19:00)."),
        ("what do I have planned this evening?", "Today: Christmas tree collection and Choir at 19:00."),
    ],
)
async def test_appointments_are_told_with_their_time(calendar: Talk, text: str, answer: str) -> None:
    assert await ask(calendar, text) == answer


async def test_adding_to_a_calendar_is_refused(calendar: Talk) -> None:
    assert await ask(calendar, "put a meeting in my calendar") == (
        "I can read the calendar, but I cannot add anything to it."
    )


async def test_a_home_without_a_calendar_says_so(talk: Talk) -> None:
    assert await ask(talk, "what's on my calendar today?") == "This home has no calendar that I can read."


@pytest.mark.parametrize(
    "text", ["turn on the kitchen light", "what's on tv", "what time is it", "am I at home"]
)
async def test_other_sentences_are_left_to_others(talk: Talk, text: str) -> None:
    assert await ask(talk, text) is None
