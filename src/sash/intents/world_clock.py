"""Tells the time in another city: "what time is it in New York?"."""

import asyncio
from datetime import datetime
from functools import cache
from zoneinfo import ZoneInfo, available_timezones

from sash.intents.situation import Reply, Situation
from sash.intents.words.phrases import choose_matches
from sash.intents.words.tokens import remove_accents, split_words

# Phrases of these sections say nothing about a place.
_AROUND = ("property", "ask", "filler", "soft", "talk", "refer", "time", "later", "join")
# A phrase of so many words asks for the time, and is not only a word such as "time".
_MIN_ASKED_WORDS = 2
_MAX_CITY_WORDS = 4
# Zones of these regions are named after no city.
_NO_CITIES = frozenset({"Etc", "SystemV", "US", "Canada", "Brazil", "Chile", "Mexico"})
_NO_NAMES = frozenset({"do", "kind", "room", "name", "noun", "calendar", "all", "any", "everything", "unit"})
_ASKING = frozenset({"ask.what", "ask.which", "ask.how"})


async def answer_world_clock(situation: Situation) -> Reply | None:
    """Return the time in the city that a sentence names; None for any other sentence."""
    city = _find_city(situation)
    if city is None:
        return None
    writer, now = situation.writer, situation.now
    # Zones are read from files.
    there = await asyncio.to_thread(_read_time, city, now)
    if there is None:
        return Reply(writer.say("talk.time_unknown", place=city, clock=writer.clock(now)), is_guess=True)
    if there.date() == now.date():
        return Reply(writer.say("talk.time_in", clock=writer.clock(there), place=city))
    day = writer.day(there.replace(tzinfo=now.tzinfo), now)
    return Reply(writer.say("talk.time_in_on", clock=writer.clock(there), place=city, day=day))


def _find_city(situation: Situation) -> str | None:
    """Return the words that are left of a question for the time, if they may name a city."""
    sentence = situation.sentence
    asked = [m for m in sentence.matches if m.tag == "property.time" and len(m.places) >= _MIN_ASKED_WORDS]
    is_asked = any(
        m.tag in _ASKING or len(m.places) > _MIN_ASKED_WORDS for m in (*sentence.find("ask"), *asked)
    )
    if not asked or not is_asked:
        return None
    chosen = choose_matches(m for kind in _AROUND for m in sentence.matches if m.kind == kind)
    covered = {place for match in chosen for place in match.places}
    left = [n for n, word in enumerate(sentence.words) if word[0].isalpha() and n not in covered]
    is_row = left == list(range(min(left, default=0), max(left, default=-1) + 1))
    if not 0 < len(left) <= _MAX_CITY_WORDS or not is_row:
        return None
    if any(m.kind in _NO_NAMES and not set(left).isdisjoint(m.places) for m in sentence.matches):
        return None
    return sentence.cut(left[0], left[-1] + 1).title()


def _read_time(city: str, now: datetime) -> datetime | None:
    """Return the time in a city; None if no time zone is named after it."""
    zone = _list_cities().get(_write_plain(city))
    return None if zone is None else now.astimezone(ZoneInfo(zone))


@cache
def _list_cities() -> dict[str, str]:
    """Return the time zones that are named after cities, by the plain names of the cities."""
    zones = (zone.split("/") for zone in sorted(available_timezones()))
    return {
        _write_plain(zone[-1].replace("_", " ")): "/".join(zone)
        for zone in zones
        if len(zone) > 1 and zone[0] not in _NO_CITIES
    }


def _write_plain(text: str) -> str:
    return " ".join(map(remove_accents, split_words(text)))
