"""Answers when the sun rises and sets, and whether it is light outside."""

from datetime import datetime

from sash.intents.sentence.sentence import Sentence
from sash.intents.situation import Reply, Situation
from sash.intents.topic import Topic
from sash.intents.words.phrases import Match, choose_matches
from sash.ports.home import NO_STATE, State

SUN = "sun.sun"
# The light at the end of dusk.
_DUSK_LUX = 10.0
_NEXT = {"set": "next_setting", "rise": "next_rising"}
_STATES = {"light": "above_horizon", "dark": "below_horizon"}
_ORDER = ("sun", "ask", "time", "room", "any", "filler", "soft", "talk", "refer", "join", "later", "tense")
_OUTSIDE = frozenset({"room.outside", "room.garden", "room.terrace", "room.balcony"})
_LASTING = frozenset({"how_long", "left"})


async def answer_sun_question(situation: Situation) -> Reply | None:
    """Return the reply to a question about sunrise, sunset or daylight; None for any other sentence."""
    asked = _find_asked(situation.sentence)
    if asked is None:
        return None
    writer, state = situation.writer, situation.index.states.get(SUN)
    if state is None or state.state in NO_STATE:
        return _measure_light(situation, asked) or Reply(writer.say("sun.none"))
    topic = Topic("other", (), (SUN,)).to_json()
    if asked.value in _STATES:
        is_so = state.state == _STATES[asked.value]
        at = read_next(state, "set" if state.state == _STATES["light"] else "rise", situation.now)
        key = f"sun.{'yes' if is_so else 'no'}_{'light' if state.state == _STATES['light'] else 'dark'}"
        when = writer.moment(at, situation.now) if at else ""
        return Reply(writer.say(key if at else f"{key}_now", when=when), topic=topic)
    at = read_next(state, asked.value, situation.now)
    if at is None:
        return Reply(writer.say("sun.none"))
    values = {"when": writer.moment(at, situation.now)}
    if any(match.value in _LASTING for match in situation.sentence.matches):
        values["duration"] = writer.duration((at - situation.now).total_seconds())
        return Reply(writer.say(f"sun.left_{asked.value}", **values), topic=topic)
    return Reply(writer.say(f"sun.{asked.value}", **values), topic=topic)


def _measure_light(situation: Situation, asked: Match) -> Reply | None:
    """Return whether it is light from a sensor outside; None without one, or for another question."""
    index, writer = situation.index, situation.writer
    outside = situation.words.find(frozenset({"room.outside"}))
    sensors = [index.entities[key] for key in sorted(outside) if index.get_device_class(key) == "illuminance"]
    if asked.value not in _STATES or not sensors or index.get_state(sensors[0].id) in NO_STATE:
        return None
    is_light = float(index.get_state(sensors[0].id)) >= _DUSK_LUX
    key = "state.yes_these" if is_light == (asked.value == "light") else "state.no_not"
    things = writer.phrase("state.is", names=writer.name(sensors[0]), state=writer.state(index, sensors[0]))
    return Reply(writer.say(key, things=things), topic=Topic("question", (), (sensors[0].id,)).to_json())


def read_next(state: State, event: str, now: datetime) -> datetime | None:
    """Return when the sun next sets ("set") or rises ("rise"); None if the home does not tell."""
    text = state.attributes.get(_NEXT[event])
    try:
        return datetime.fromisoformat(str(text)).astimezone(now.tzinfo)
    except ValueError:
        return None


def _find_asked(sentence: Sentence) -> Match | None:
    """Return the phrase for what is asked, if the sentence asks nothing else."""
    asked = next(iter(sentence.find("sun")), None)
    if asked is None or any(match.tag == "tense.past" for match in sentence.matches):
        return None
    is_question = "?" in sentence.words or bool(sentence.find("ask")) or asked.value in _NEXT
    chosen = choose_matches((m for kind in _ORDER for m in sentence.matches if m.kind == kind), asked.places)
    covered = {*asked.places, *(place for match in chosen for place in match.places)}
    has_more = any(word[0].isalnum() and n not in covered for n, word in enumerate(sentence.words))
    is_inside = any(match.kind == "room" and match.tag not in _OUTSIDE for match in chosen)
    return None if has_more or is_inside or not is_question else asked
