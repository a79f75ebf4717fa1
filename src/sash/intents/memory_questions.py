"""Answers questions about what the user wants to be remembered, from facts and earlier turns."""

import re
from collections.abc import Sequence

from sash.intents.concepts import (
    CALLED,
    CODE,
    LIKE,
    add_implied,
    find_code,
    find_concepts,
    has_all,
    is_known_to_home,
    says_lasting,
)
from sash.intents.question_detection import is_question
from sash.intents.quotes import quote
from sash.intents.said_before import cite_said, find_said, is_statement, list_said, recall_said, tell_said
from sash.intents.sentence.clause import Word
from sash.intents.sentence.reader import SentenceReader
from sash.intents.sentence.sentence import Sentence
from sash.intents.situation import PlannedCall, Reply, Situation
from sash.intents.statements import REMEMBER_TOOL, tells_lasting
from sash.memory.recall_lexicon import choose_language
from sash.memory.words import split_words

MAX_FACTS = 10
MAX_ANSWERS = 3
MAX_NAME_WORDS = 3
# Facts about different places or things are all told. Of facts about the same one, the newest is.
_PLACES = ("room.", "noun.", "kind.")
_WHAT = frozenset({"what", "which", "how", "how_much"})
_AT_END = frozenset({"ask.when", "ask.where", "ask.who", "condition.when"})
_NUMBER = re.compile(r"\d+(?:[.,]\d+)?")


async def answer_memory_question(situation: Situation) -> Reply | None:
    """Return the reply to a question about facts, or to the user's name; None for any other sentence."""
    noted = _note_name(situation) or _note_liking(situation) or _hear_code(situation)
    if reply := noted or await _answer_about_all(situation):
        return reply
    sentence = situation.sentence
    if not (_is_question(sentence) or is_question(sentence.text, situation.reader.lexicon.language)):
        return None
    wanted = find_concepts(sentence)
    is_personal = bool(wanted & {LIKE, CALLED})
    is_of_home = not is_personal and all(is_known_to_home(each, situation.words) for each in wanted)
    is_vague = (
        len(wanted) == 1
        and not is_personal
        and any(m.tag == "ask.is" for m in sentence.matches if m.start == 0)
    )
    if not wanted or is_vague or (is_of_home and not says_lasting(sentence)):
        return None
    facts = await situation.utterance.dialogue.list_facts()
    if wanted == {CALLED} and _says_my(sentence):
        return _tell_name(situation, facts)
    if found := _find_facts(situation.reader, facts, wanted):
        return Reply(" ".join(_tell(situation, fact) for fact in found))
    return None if is_of_home else await _answer_from_talk(situation, wanted)


async def _answer_from_talk(situation: Situation, wanted: frozenset[str]) -> Reply | None:
    """Return what the user said as the answer, or that it was not said; None for other questions."""
    said = await list_said(situation)
    if len(wanted) > 1 and (match := find_said(situation.reader, said, wanted)):
        # Names and unknown words are the same in all languages.
        is_guess = _is_in_other_language(situation)
        return Reply(tell_said(situation, match), citations=cite_said([match]), is_guess=is_guess)
    others = wanted - {LIKE, CALLED}
    if CALLED in wanted and any(is_known_to_home(each, situation.words) for each in others):
        return None
    is_personal = bool(wanted & {LIKE, CALLED})
    is_asked_of_user = is_personal or CODE in wanted
    if recalled := await recall_said(situation, looks_back=not is_asked_of_user):
        return recalled
    if not is_asked_of_user:
        return None
    is_guess = situation.utterance.has_model or not is_personal
    return Reply(situation.writer.say("memory.unknown"), is_guess=is_guess)


async def _answer_about_all(situation: Situation) -> Reply | None:
    """Return the reply to a sentence about all facts: "what do you know about me?". None for others."""
    sentence = situation.sentence
    # "What do you know about the kitchen?"
    is_of_home = any(match.kind in ("room", "kind") for match in sentence.matches)
    about = sentence.find("self")
    asks = bool(about) and about[0].value == "know_about_me" and not is_of_home
    forgets = any(match.tag == "memory.forget_all" for match in sentence.matches)
    if not asks and not forgets:
        return None
    facts = await situation.utterance.dialogue.list_facts()
    if asks:
        return Reply(_tell_all(situation, facts))
    return Reply(situation.writer.say("memory.forget_one" if facts else "memory.nothing_noted"))


def report_name(situation: Situation) -> Reply | None:
    """Return the report that a name or another fact was noted; None if another call was made."""
    results = situation.utterance.results
    if len(results) != 1 or results[0].name != REMEMBER_TOOL or "fact" not in results[0].parse_object():
        return None
    sentence = situation.sentence
    phrase = next((match for match in sentence.find("memory") if match.value == "name_is"), None)
    likes = any(match.tag == "memory.i_like" for match in sentence.matches)
    if phrase is None and (likes or tells_lasting(situation)):
        fact = str(results[0].parse_object()["fact"]).rstrip(".!")
        return Reply(situation.writer.say("memory.noted", fact=fact))
    if phrase is None:
        return None
    name = sentence.cut(phrase.end, len(sentence.tokens))
    return Reply(situation.writer.say("memory.noted_name", name=name))


def find_liked_number(reader: SentenceReader, facts: Sequence[str], words: Sequence[Word]) -> float | None:
    """Return the number that the user likes, such as a temperature, for the place that words describe.

    `facts` are ordered, the newest last. A fact about the place wins over one without a place. Return None
    if no fact says a number.
    """
    wanted = frozenset(key for word in words for key in word.keys if key.startswith("room."))
    general: float | None = None
    for fact in reversed(facts):
        sentence = reader.read(fact)
        concepts = find_concepts(sentence)
        number = next((word for word in sentence.words if _NUMBER.fullmatch(word)), None)
        if LIKE not in concepts or number is None:
            continue
        rooms = {concept for concept in concepts if concept.startswith("room.")}
        value = float(number.replace(",", "."))
        if rooms & wanted or not rooms | wanted:
            return value
        if not rooms and general is None:
            general = value
    return general


def _note_name(situation: Situation) -> Reply | None:
    """Note the name of the user: "my name is Tom"."""
    utterance, sentence = situation.utterance, situation.sentence
    phrase = next((match for match in sentence.find("memory") if match.value == "name_is"), None)
    if phrase is None or "?" in sentence.words or REMEMBER_TOOL not in utterance.tools:
        return None
    fillers = {place for m in sentence.matches if m.kind == "filler" for place in m.places}
    rest = range(phrase.end, len(sentence.words))
    is_first = fillers.issuperset(range(phrase.start))
    if not is_first or not 0 < len(rest) <= MAX_NAME_WORDS or not all(_is_name(situation, n) for n in rest):
        return None
    text = sentence.cut(phrase.start, len(sentence.tokens))
    return Reply(calls=(PlannedCall(REMEMBER_TOOL, {"text": text}),))


def _note_liking(situation: Situation) -> Reply | None:
    """Note what the user likes: "I like it at 21 degrees in the evening"."""
    utterance, sentence = situation.utterance, situation.sentence
    phrase = next((match for match in sentence.find("memory") if match.value == "i_like"), None)
    if phrase is None or _is_question(sentence):
        return None
    if REMEMBER_TOOL not in utterance.tools or utterance.has_model:
        return None
    empty = {p for m in sentence.matches if m.kind in ("filler", "soft", "refer", "talk") for p in m.places}
    rest = [n for n in range(phrase.end, len(sentence.words)) if sentence.words[n][0].isalnum()]
    if not empty.issuperset(range(phrase.start)) or empty.issuperset(rest):
        return None
    return Reply(
        calls=(PlannedCall(REMEMBER_TOOL, {"text": sentence.cut(phrase.start, len(sentence.tokens))}),)
    )


def _hear_code(situation: Situation) -> Reply | None:
    """Confirm that a thing shows a code, such as "my boiler shows F28". A question may ask for it later."""
    sentence = situation.sentence
    code = find_code(sentence)
    shows = any(match.tag in (CODE, "memory.shows") for match in sentence.matches)
    if code is None or not shows or not is_statement(situation.reader, sentence):
        return None
    return Reply(situation.writer.say("memory.heard_code", code=code), is_guess=True)


def _is_name(situation: Situation, place: int) -> bool:
    """Return whether a word may be the name of a person: it is written so, or it has no other meaning."""
    sentence = situation.sentence
    written = sentence.cut(place, place + 1)
    is_word = sentence.words[place] in situation.reader.lexicon.finder.words
    return written.isalpha() and (not is_word or (written[0].isupper() and not sentence.text.isupper()))


def _is_question(sentence: Sentence) -> bool:
    """Return whether a sentence has a question mark, or a question word at its start or after "I like"."""
    likes = [match.end for match in sentence.find("memory") if match.value == "i_like"]
    if "?" in sentence.words or any(m.value in _WHAT and m.start in likes for m in sentence.find("ask")):
        return True
    if any(m.tag in _AT_END and m.end == len(sentence.words) for m in sentence.matches):
        return True  # "Mamie vient quand".
    if any(match.tag == "mood.speaker" and match.start == 0 for match in sentence.matches):
        return False  # "We have two cats".
    asks = [match.start for match in sentence.matches if match.kind in ("ask", "self")]
    before = {p for m in sentence.matches if m.kind in ("filler", "join", "talk") for p in m.places}
    return any(before.issuperset(range(start)) for start in asks)


def _says_my(sentence: Sentence) -> bool:
    return any(match.tag == "memory.my" for match in sentence.matches)


def _find_facts(reader: SentenceReader, facts: Sequence[str], wanted: frozenset[str]) -> list[str]:
    """Return the facts with all wanted concepts: the newest one for each place, the newest last."""
    found: dict[frozenset[str], str] = {}
    for fact in reversed(facts):
        sentence = reader.read(fact)
        concepts = find_concepts(sentence)
        # What somebody likes is no answer to the question how it is.
        if (LIKE in concepts) == (LIKE in wanted) and has_all(add_implied(concepts, sentence), wanted):
            place = frozenset(each for each in concepts if each.startswith(_PLACES))
            found.setdefault(place, fact)
    return list(found.values())[:MAX_ANSWERS][::-1]


def _tell(situation: Situation, fact: str) -> str:
    """Tell the user a fact in the second person where that is easy, or else quote it."""
    text = fact.strip().rstrip(".!")
    if clause := _tell_clause(situation, text):
        return situation.writer.say("memory.told", that=clause)
    swaps = situation.writer.table("memory.swap")
    pattern = re.compile(rf"\b(?:{'|'.join(sorted(swaps, key=len, reverse=True))})\b", re.I)
    if not swaps or any(not swaps[found[0].lower()] for found in pattern.finditer(text)):
        return situation.writer.say("memory.quoted", fact=quote(text))
    turned = pattern.sub(lambda found: swaps[found[0].lower()], text)
    return f"{turned[:1].upper()}{turned[1:]}."


def _tell_clause(situation: Situation, fact: str) -> str:
    """Return a fact that was stated as a clause with its verb at the end: "dass der Schlüssel hier liegt".

    Return nothing if the fact is no such clause, or cannot be told in the second person.
    """
    verbs, swaps = situation.writer.table("memory.last_verbs"), situation.writer.table("memory.swap")
    *words, last = fact.split()
    me = situation.writer.table("memory.me")
    if last not in verbs or len(words) < 2:
        return ""
    is_me = any(word.lower() in me for word in words)
    told = [me.get(word.lower()) or swaps.get(word.lower(), word) for word in words]
    verb = verbs[last] if is_me else last
    is_clear = all(told) and bool(verb)
    return situation.writer.phrase("memory.that", fact=" ".join([*told, verb])) if is_clear else ""


def _tell_all(situation: Situation, facts: Sequence[str]) -> str:
    if not facts:
        return situation.writer.say("memory.nothing_noted")
    told = [_tell_inside(situation, fact) for fact in facts[-MAX_FACTS:]]
    more = len(facts) - len(told)
    listed = "; ".join(told)
    return situation.writer.say("memory.all_more" if more else "memory.all", facts=listed, count=more)


def _tell_inside(situation: Situation, fact: str) -> str:
    """Return a fact as a part of a sentence, without a capital letter if it is no name."""
    if clause := _tell_clause(situation, fact.strip().rstrip(".!")):
        return clause
    told = _tell(situation, fact)
    if not situation.writer.table("memory.swap"):
        return situation.writer.phrase("talk.quoted", text=quote(fact))
    first = told.split(maxsplit=1)[0].lower()
    is_word = first in situation.reader.lexicon.words
    return (told[:1].lower() + told[1:] if is_word else told).rstrip(".")


def _tell_name(situation: Situation, facts: Sequence[str]) -> Reply:
    """Tell the user's own name, from the newest fact about it or from the sign-in."""
    for fact in reversed(facts):
        sentence = situation.reader.read(fact)
        phrase = next((match for match in sentence.find("memory") if match.value == "name_is"), None)
        if phrase is not None and phrase.end < len(sentence.words):
            name = sentence.cut(phrase.end, len(sentence.tokens))
            return Reply(situation.writer.say("memory.your_name", name=name))
    caller = situation.utterance.caller
    if caller is not None and caller.user_name and caller.certainty != "unknown":
        return Reply(situation.writer.say("memory.your_name", name=caller.user_name))
    return Reply(situation.writer.say("memory.unknown_name"), is_guess=True)


def _is_in_other_language(situation: Situation) -> bool:
    """Return whether the small words of a sentence belong to another language than that of the reader."""
    language = situation.reader.lexicon.language
    return choose_language(split_words(situation.sentence.text), language) != language
