"""Answers small talk: greetings, thanks, what Sash can do, the time and the date."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from sash.home.index import HomeIndex
from sash.intents.kinds import list_kinds
from sash.intents.sentence.moments import find_day
from sash.intents.sentence.sentence import Sentence
from sash.intents.situation import Reply, Situation
from sash.intents.words.phrases import choose_matches
from sash.intents.world_clock import answer_world_clock
from sash.ports.home import NO_STATE, UNAVAILABLE, Entity

MAX_EXAMPLES = 5
_MAX_NAME_CHARS = 40
_EVENING_HOUR = 17
_GOOD_NIGHT = "noun.good_night"
_STOPPING = frozenset({"do.stop", "do.mute", "do.pause"})
_RUNNING = {
    "media_player": ("playing",),
    "vacuum": ("cleaning", "returning"),
    "lawn_mower": ("mowing",),
    "cover": ("opening", "closing"),
    "timer": ("active",),
}
# Answers that a model would give better.
_GUESSES = frozenset({"joke", "blame", "love", "how_are_you", "privacy", "program"})
# Answers to a question that a model may have asked.
_REPLIES = frozenset({"yes", "no", "never_mind", "unsure", "praise", "sorry"})
# "How are you today?" is small talk, but "tomorrow morning" is no greeting.
_AT_ANY_TIME = frozenset({"how_are_you", "thanks", "help"})
# Around the phrase of a greeting there may be another one: "hello, how are you?"
_AROUND = ("filler", "soft", "talk", "join")
_AROUND_TIME = frozenset({"join", "filler", "ask", "refer", "time", "property", "talk"})
# The same in all languages. It takes note of an answer, and answers no question.
_OKAY = frozenset({"ok", "okay"})
# "OK, perfect" is praise and no answer.
_AFTER_YES = frozenset({"praise", "thanks", "bye", "never_mind"})


async def answer_small_talk(situation: Situation) -> Reply | None:
    """Return the reply to a sentence that is nothing but small talk; None for any other sentence."""
    sentence, writer = situation.sentence, situation.writer
    if reply := _tell_time(situation) or await answer_world_clock(situation) or _say_how_to(situation):
        return reply
    if sentence.covers("noun") == _GOOD_NIGHT.partition(".")[2]:
        is_in_home = bool(situation.words.find_named(frozenset({_GOOD_NIGHT})))
        return None if is_in_home else Reply(writer.say("talk.good_night"))
    meaning = _find_meaning(sentence)
    if meaning is None or await _is_meant_otherwise(situation, meaning):
        return None
    if meaning == "help":
        return Reply(_describe_abilities(situation))
    if meaning == "yes" and _OKAY.issuperset(sentence.words):
        return Reply(writer.say("talk.okay"))
    if meaning == "good_morning" and _goes_on(situation):
        return None
    if meaning == "good_evening" and situation.now.hour < _EVENING_HOUR:
        meaning = "hello"
    if meaning == "blame":
        has_acted = await situation.utterance.dialogue.explain_action() is not None
        return Reply(writer.say("talk.blame_undo" if has_acted else "talk.blame"), is_guess=True)
    if meaning == "who_are_you" and situation.live_home is None:
        return Reply(writer.say("talk.who_am_i"))
    is_guess = meaning in _GUESSES and (situation.utterance.has_model or not _is_all_talk(sentence))
    return Reply(writer.say(f"talk.{meaning}"), is_guess=is_guess)


def _find_meaning(sentence: Sentence) -> str | None:
    """Return the meaning of a sentence that is nothing but small talk; None for other sentences."""
    acts = {match.places for match in sentence.find("do")}
    if any(match.tag == "refer.again" and match.places in acts for match in sentence.matches):
        return None  # "Sorry, back on".
    meaning = sentence.covers("talk", more=_AROUND)
    if meaning is None:
        timed = sentence.covers("talk", more=(*_AROUND, "time"))
        return timed if timed in _AT_ANY_TIME else None
    if meaning == "never_mind" and _says_thanks(sentence):
        return "thanks"
    if meaning != "yes":
        return meaning
    return next((match.value for match in sentence.find("talk") if match.value in _AFTER_YES), meaning)


def _is_all_talk(sentence: Sentence) -> bool:
    """Return whether each word is small talk. "Hoe is het weer" has one that is not: "weer"."""
    return sentence.covers("talk", more=("talk",)) is not None


def _says_thanks(sentence: Sentence) -> bool:
    """Return whether a sentence begins with thanks: "thank you, that's all", but not "no thanks"."""
    talk = [match for match in sentence.find("talk") if match.value in ("thanks", "never_mind", "no")]
    return any(match.value == "thanks" for match in choose_matches(talk)[:1])


def _say_how_to(situation: Situation) -> Reply | None:
    """Return the words to say, for "how do I turn on the TV?"; None for other sentences."""
    sentence = situation.sentence
    asked = next((match for match in sentence.find("ask") if match.value == "how_to"), None)
    if asked is None or sentence.find("self"):
        return None
    clauses = situation.reader.read_clauses(sentence)
    if any(clause.unknown for clause in clauses):
        return None  # "How do I make pancakes?" is about nothing in the home.
    if not any(match.kind == "do" and match.start == asked.end for match in sentence.matches):
        return None
    text = sentence.cut(asked.end, len(sentence.words)).rstrip(" ?.!")
    return Reply(situation.writer.say("talk.just_say", text=text), is_guess=situation.utterance.has_model)


async def _is_meant_otherwise(situation: Situation, meaning: str) -> bool:
    """Return whether a phrase of small talk is a question, a command, or a reply to a model."""
    if meaning == "help" and situation.sentence.find("self"):
        return True  # "How do you know?" is about the last answer.
    if _asks_something_else(situation) or (meaning == "never_mind" and _has_command(situation)):
        return True
    talk = {place for match in situation.sentence.find("talk") for place in match.places}
    has_time = any(not talk.issuperset(match.places) for match in situation.sentence.find("time"))
    return meaning in _REPLIES and (has_time or await _follows_model(situation))


def _goes_on(situation: Situation) -> bool:
    """Return whether a sentence goes on with the last one: "und morgen" asks for tomorrow."""
    return any(match.kind == "join" and match.start == 0 for match in situation.sentence.matches)


async def _follows_model(situation: Situation) -> bool:
    """Return whether a model can be asked, and gave the last answer."""
    if not situation.utterance.has_model:
        return False
    turns = await situation.utterance.dialogue.list_recent(1)
    return bool(turns and turns[-1].has_model_call)


def _asks_something_else(situation: Situation) -> bool:
    """Return whether a question begins before the phrase: "is it cool?" """
    starts = {match.kind for match in situation.sentence.matches if match.start == 0}
    return "ask" in starts and "talk" not in starts


def list_examples(situation: Situation) -> list[str]:
    """Return sentences that work in this home now, as quotations without marks."""
    return list(_iterate_examples(situation))[:MAX_EXAMPLES]


def _has_command(situation: Situation) -> bool:
    """Return whether "stop" or "be quiet" may mean something that runs or plays at the moment."""
    is_command = any(match.tag in _STOPPING for match in situation.sentence.matches)
    return is_command and any(
        state.domain in _RUNNING and state.state in _RUNNING[state.domain]
        for state in situation.index.states.values()
    )


def _describe_abilities(situation: Situation) -> str:
    writer = situation.writer
    examples = [writer.phrase("talk.quoted", text=text) for text in list_examples(situation)]
    key = "talk.help" if situation.live_home else "talk.help_without_home"
    return writer.say(key, examples=writer.join(examples, "or"))


def _iterate_examples(situation: Situation) -> Iterator[str]:
    """Yield an example for each kind of thing. The things in the area of the speaker come first."""
    say = situation.writer.say
    if light := _choose(situation, "kind.light"):
        yield say("talk.example_light", name=situation.writer.name(light))
    if (sensor := _choose(situation, "property.temperature")) and (area := situation.index.get_area(sensor)):
        yield say("talk.example_temperature", name=situation.writer.name(area))
    if cover := _choose(situation, "kind.blind"):
        yield say("talk.example_cover", name=situation.writer.name(cover))
    for kind in ("kind.media", "kind.fan", "kind.light"):
        if timed := _choose(situation, kind, other_than=light):
            yield say("talk.example_later", name=situation.writer.name(timed))
            break
    if todo := _choose(situation, "kind.list"):
        yield say("talk.example_list", name=situation.writer.name(todo))
    if _choose(situation, "kind.weather"):
        yield say("talk.example_weather")
    yield say("talk.example_time")
    yield say("talk.example_remember")


def _choose(situation: Situation, kind: str, *, other_than: Entity | None = None) -> Entity | None:
    """Return an entity of a kind that works now, in the area of the speaker if there is one."""
    index = situation.index
    found = [
        entity
        for entity in index.entities.values()
        if entity is not other_than
        and len(entity.name) <= _MAX_NAME_CHARS
        and kind in list_kinds(entity.domain, index.get_device_class(entity.id))
        and _is_usable(index, entity)
    ]
    found.sort(key=lambda entity: entity.area_id != situation.area_id)
    return found[0] if found else None


def _is_usable(index: HomeIndex, entity: Entity) -> bool:
    state = index.get_state(entity.id)
    return state not in NO_STATE if entity.domain == "sensor" else state != UNAVAILABLE


def _tell_time(situation: Situation) -> Reply | None:
    """Return the time or the date, if the sentence asks for nothing else."""
    sentence = situation.sentence
    chosen = choose_matches(
        sorted(
            (match for match in sentence.matches if match.kind in _AROUND_TIME),
            key=lambda match: match.kind != "property",
        )
    )
    covered = {place for match in chosen for place in match.places}
    has_more = any(word[0].isalnum() and place not in covered for place, word in enumerate(sentence.words))
    asked = {match.value for match in chosen if match.kind == "property"}
    if has_more or len(asked) != 1 or not asked <= {"time", "date"}:
        return None
    is_asked = any(
        match.kind == "ask" or (match.kind == "property" and len(match.places) > 2)
        for match in sentence.matches
    )
    if not is_asked and len(sentence.words) > 1:
        return None
    days = {match.value for match in chosen if match.kind == "time"}
    writer, now = situation.writer, situation.now
    if "date" in asked:
        day = find_day(days.pop(), now, is_future=True) if len(days) == 1 else now.date()
        if day is None:
            return None
        return Reply(_say_date(situation, now + (day - now.date())))
    return None if days - {"today"} else Reply(writer.say("talk.time", clock=writer.clock(now)))


def _say_date(situation: Situation, moment: datetime) -> str:
    writer, now = situation.writer, situation.now
    is_today = moment - now < timedelta(days=1) and moment.date() == now.date()
    if is_today:
        return writer.say("talk.date", date=writer.date(now))
    return writer.say("talk.date_of_day", day=writer.day(moment, now), date=writer.date(moment))
