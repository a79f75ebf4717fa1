"""Answers questions about the weather, now and in the forecast of the home's weather service."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta

from sash.errors import SashError
from sash.intents.forecast import Forecast, list_days, read_day
from sash.intents.past.question import is_over
from sash.intents.sentence.time_words import WEEKDAYS, TimeWords
from sash.intents.situation import Reply, Situation
from sash.intents.topic import Topic
from sash.intents.words.phrases import Match, choose_matches
from sash.ports.home import NO_STATE, Entity

_RAIN = frozenset({"rainy", "pouring", "lightning-rainy", "snowy-rainy", "hail"})
_COMPARED = frozenset({"warmer", "colder"})
_CONDITIONS = {
    "rain": _RAIN,
    "umbrella": _RAIN,
    "snow": frozenset({"snowy", "snowy-rainy"}),
    "sun": frozenset({"sunny", "clear-night"}),
    "wind": frozenset({"windy", "windy-variant", "exceptional"}),
    "storm": frozenset({"lightning", "lightning-rainy", "exceptional"}),
    "fog": frozenset({"fog"}),
}
_TOPICS = frozenset({*_CONDITIONS, "frost"})
_FREEZING = {"°C": 0.0, "°F": 32.0}
_HALF_WEEK = timedelta(days=4)
_PAST_DAYS = frozenset(
    {"yesterday", "day_before_yesterday", "last_week", "last_month", "this_month", "this_year"}
)
_OUTSIDE = frozenset({"room.outside", "room.house", "room.garden", "room.terrace", "room.balcony"})
_ORDER = (
    *("weather", "property", "name", "room", "kind", "time", "unit", "ask", "filler"),
    *("refer", "do", "any", "value", "memory", "not", "amount"),
)
# Words of another request: the sentence waits for the weather, or acts because of it.
_EXTREMES = frozenset({"ask.highest", "ask.lowest", "ask.warmest", "ask.coldest", "ask.average"})
_OTHER_REQUESTS = ("later", "condition", "colour", "item")


@dataclass(frozen=True, slots=True)
class _Question:
    """What a sentence asks about the weather: a kind of weather, or else the whole, and for which time."""

    topic: str
    time: TimeWords
    is_future: bool
    asks_when: bool


async def answer_weather_question(situation: Situation) -> Reply | None:
    """Return the reply to a question about the weather; None for any other sentence."""
    question = _read_question(situation)
    if question is None:
        return None
    entity = _choose_entity(situation)
    if entity is None:
        return Reply(situation.writer.say("weather.none"), is_guess=True)
    try:
        text = await _answer(situation, question, entity)
    except SashError:
        text = situation.writer.say("weather.no_forecast")
    return Reply(text, topic=Topic("other", (), (entity.id,)).to_json())


def _read_question(situation: Situation) -> _Question | None:
    sentence = situation.sentence
    chosen = choose_matches(match for kind in _ORDER for match in sentence.matches if match.kind == kind)
    covered = {place for match in chosen for place in match.places}
    if any(
        word[0].isalnum() and not word[0].isdigit() and n not in covered
        for n, word in enumerate(sentence.words)
    ):
        return None
    topic = "weather" if _goes_on(situation, chosen) else _find_topic(chosen)
    time = next((c.time for c in situation.reader.read_clauses(sentence) if not c.time.is_empty), TimeWords())
    values = {match.value for match in sentence.find("weather")}
    is_announced = not values.isdisjoint({"future", "outlook"})
    if is_announced and (time.day, time.part) == ("today", "night"):
        time = replace(time, part="evening")  # "Cette nuit" is the next night beside "va pleuvoir".
    is_future = is_announced or _is_future(time, situation)
    if (
        topic is None
        or "past" in values
        or time.day in _PAST_DAYS
        or is_over(time, situation.now)
        or not (_is_question(situation, chosen, topic) or (is_future and topic in _CONDITIONS))
    ):
        return None
    if any(
        match.kind in _OTHER_REQUESTS and match.value != "tell" and match.start not in _ask_places(chosen)
        for match in sentence.matches
    ):
        return None
    rooms = {match.tag for match in chosen if match.kind == "room"}
    if rooms - _OUTSIDE or _names_other_things(situation, chosen):
        return None
    is_measured = time.day == "this_week" and not is_announced and bool(_EXTREMES & {m.tag for m in chosen})
    if topic == "temperature" and (not is_future or is_measured):
        return None
    asks_when = any(match.tag == "ask.when" for match in sentence.matches) and topic in _CONDITIONS
    return _Question(topic, time, is_future or topic == "umbrella", asks_when)


def _find_topic(chosen: Sequence[Match]) -> str | None:
    """Return the kind of weather, "temperature" or "weather"; None if the sentence speaks of none."""
    acts = {match.value for match in chosen if match.kind == "do"}
    if acts and acts <= _COMPARED:
        return "temperature"  # "Will it be warmer tomorrow?"
    named = {match.value for match in chosen if match.kind == "weather"}
    topics = named & _TOPICS
    topics |= acts & _CONDITIONS.keys()
    topics = topics or ({"weather"} if "outlook" in named else set())
    if acts - _CONDITIONS.keys() - {"make", "put", "on"} or len(topics) > 1:
        return None
    if topics:
        return topics.pop()
    properties = {match.value for match in chosen if match.kind == "property"}
    if "weather" in properties:
        return "temperature" if "temperature" in properties else "weather"
    return "temperature" if properties == {"temperature"} else None


def _goes_on(situation: Situation, chosen: Sequence[Match]) -> bool:
    """Return whether the sentence only names a time after an answer about the weather: "and on Monday?"."""
    is_about_weather = any(entity_id.startswith("weather.") for entity_id in situation.focus_ids[:1])
    kinds = {match.kind for match in chosen} - {"filler", "refer", "ask", "join", "value"}
    return is_about_weather and kinds == {"time"}


def _is_future(time: TimeWords, situation: Situation) -> bool:
    if time.day == "today" and time.part in ("evening", "night"):
        return situation.now.hour < 18
    return time.day is not None and time.day != "today"


def _is_question(situation: Situation, chosen: Sequence[Match], topic: str) -> bool:
    """Return whether the sentence asks. "The weather tomorrow" asks without a question word."""
    is_bare = topic in ("weather", "umbrella") or any(match.tag == "weather.future" for match in chosen)
    return is_bare or "?" in situation.sentence.words or bool(situation.sentence.find("ask"))


def _ask_places(chosen: Sequence[Match]) -> set[int]:
    return {
        place
        for match in chosen
        if match.kind in ("ask", "filler", "time", "weather")
        for place in match.places
    }


def _names_other_things(situation: Situation, chosen: Sequence[Match]) -> bool:
    """Return whether the sentence names something of the home that is no weather service."""
    for match in chosen:
        if match.kind == "kind":
            return True
        if match.kind == "name":
            name = situation.words.names[tuple(match.value.split())]
            is_weather = any(each.startswith("weather.") for each in name.entity_ids)
            if not is_weather and not (name.keys & _OUTSIDE):
                return True
    return False


def _choose_entity(situation: Situation) -> Entity | None:
    """Return the weather service that the sentence names, or else the first one that works."""
    services = [entity for entity in situation.index.entities.values() if entity.domain == "weather"]
    for match in situation.sentence.find("name"):
        ids = situation.words.names[tuple(match.value.split())].entity_ids
        if named := [entity for entity in services if entity.id in ids]:
            return named[0]
    focus = [entity for entity in services if entity.id in situation.focus_ids]
    working = [entity for entity in services if situation.index.get_state(entity.id) not in NO_STATE]
    return next(iter([*focus, *working, *services]), None)


async def _answer(situation: Situation, question: _Question, entity: Entity) -> str:
    if question.asks_when:
        return _tell_when(situation, question, await list_days(situation, entity))
    if question.time.is_empty and not question.is_future:
        return _tell_now(situation, question, entity)
    if question.time.day in ("weekend", "this_week") and question.topic in ("weather", "temperature"):
        return _tell_days(situation, question, await list_days(situation, entity))
    if question.time.day in ("weekend", "this_week"):
        return _tell_when(
            situation, question, _choose_days(situation, question, await list_days(situation, entity))
        )
    found = await read_day(situation, entity, question.time)
    if found is None and question.time.day in (None, "today"):
        return _tell_now(situation, question, entity)
    return (
        situation.writer.say("weather.too_far")
        if found is None
        else _tell_forecast(situation, question, found)
    )


def _tell_now(situation: Situation, question: _Question, entity: Entity) -> str:
    state = situation.index.states.get(entity.id)
    if state is None or state.state in NO_STATE:
        return situation.writer.say("weather.unavailable")
    if question.topic == "wind" and _asks_how(situation):
        speed = state.attributes.get("wind_speed")
        if isinstance(speed, int | float):
            unit = str(state.attributes.get("wind_speed_unit") or "km/h")
            return situation.writer.say("weather.wind_speed", speed=situation.writer.quantity(speed, unit))
    wanted = _CONDITIONS.get(question.topic)
    key = "now" if wanted is None else "yes_now" if state.state in wanted else "no_now"
    return situation.writer.say(f"weather.{key}", weather=_describe_now(situation, entity))


def _asks_how(situation: Situation) -> bool:
    return any(match.value in ("how", "how_much", "what") for match in situation.sentence.find("ask"))


def _describe_now(situation: Situation, entity: Entity) -> str:
    state, writer = situation.index.states[entity.id], situation.writer
    condition = name_condition(situation, state.state)
    temperature = state.attributes.get("temperature")
    if not isinstance(temperature, int | float):
        return condition
    unit = str(state.attributes.get("temperature_unit") or "°C")
    return writer.phrase(
        "weather.with_temperature", weather=condition, temperature=writer.quantity(round(temperature), unit)
    )


def name_condition(situation: Situation, condition: str) -> str:
    """Return the name of a condition in the language of the sentence: "foggy"."""
    named = situation.writer.table("weather.conditions").get(condition.replace("-", "_"))
    return named or situation.writer.state_name(condition).replace("-", " ")


def _tell_forecast(situation: Situation, question: _Question, forecast: Forecast) -> str:
    day = _say_day(situation, question.time, forecast.day)
    weather = _describe(situation, forecast, question.topic)
    if question.topic in ("temperature", "frost") and forecast.highest is None:
        return situation.writer.say("weather.too_far")
    if question.topic not in _TOPICS:
        return situation.writer.say("weather.will", day=day, weather=weather)
    key = "yes_will" if _is_so(question.topic, forecast) else "no_will"
    return situation.writer.say(f"weather.{key}", day=day, weather=weather)


def _is_so(topic: str, forecast: Forecast) -> bool:
    if topic == "frost":
        return forecast.lowest is not None and forecast.lowest <= _FREEZING.get(forecast.unit, 0.0)
    return bool(forecast.conditions & _CONDITIONS[topic])


def _say_day(situation: Situation, time: TimeWords, day: date) -> str:
    writer, now = situation.writer, situation.now
    if time.part in ("evening", "night") and day == now.date():
        return writer.phrase("weather.tonight")
    moment = now.replace(year=day.year, month=day.month, day=day.day)
    # A day that was named as a weekday is called so again, and not "tomorrow".
    return writer.day(moment, moment - _HALF_WEEK if time.day in WEEKDAYS else now)


def _describe(situation: Situation, forecast: Forecast, topic: str) -> str:
    """Return a forecast in words: "partly cloudy, 7 to 13 degrees". What was asked for comes first."""
    writer, with_condition = situation.writer, topic not in ("temperature", "frost")
    asked = sorted(forecast.conditions & _CONDITIONS.get(topic, frozenset()))
    condition = asked[0] if asked else forecast.condition
    parts = [name_condition(situation, condition)] if with_condition and condition else []
    if forecast.highest is not None:
        highest = writer.quantity(round(forecast.highest), forecast.unit)
        has_range = forecast.lowest is not None and round(forecast.lowest) != round(forecast.highest)
        lowest = writer.number(round(forecast.lowest)) if has_range and forecast.lowest is not None else ""
        parts.append(writer.phrase("weather.range", lowest=lowest, highest=highest) if has_range else highest)
    if with_condition and forecast.rain_mm:
        parts.append(writer.phrase("weather.rain", amount=writer.number(forecast.rain_mm, 1)))
    return ", ".join(parts)


def _choose_days(situation: Situation, question: _Question, days: Sequence[Forecast]) -> list[Forecast]:
    """Return the days of the weekend, or of the rest of the week."""
    today = situation.now.date()
    left = 6 - today.weekday()
    wanted = [one for one in days if 0 <= (one.day - today).days <= left]
    return [one for one in wanted if one.day.weekday() >= 5] if question.time.day == "weekend" else wanted


def _tell_days(situation: Situation, question: _Question, days: Sequence[Forecast]) -> str:
    chosen = _choose_days(situation, question, days)
    if not chosen:
        return situation.writer.say("weather.too_far")
    if len(chosen) == 1:
        return _tell_forecast(situation, question, chosen[0])
    told = [
        situation.writer.phrase(
            "weather.day",
            day=_say_day(situation, TimeWords(), one.day),
            weather=_describe(situation, one, question.topic),
        )
        for one in chosen
    ]
    text = "; ".join(told)
    return f"{text[:1].upper()}{text[1:]}."


def _tell_when(situation: Situation, question: _Question, days: Sequence[Forecast]) -> str:
    """Say the first day with a kind of weather, or that none is forecast."""
    wanted = _CONDITIONS.get(question.topic, frozenset())
    found = next((one for one in days if one.conditions & wanted), None)
    if found is None:
        return situation.writer.say("weather.not_soon" if days else "weather.too_far")
    day = _say_day(situation, TimeWords(), found.day)
    return situation.writer.say("weather.will", day=day, weather=_describe(situation, found, question.topic))
