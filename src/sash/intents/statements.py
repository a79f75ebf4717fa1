"""Notes what a person tells about their life, such as a birthday, and acknowledges other remarks."""

from collections.abc import Sequence
from dataclasses import replace

from sash.intents.concepts import CALLED
from sash.intents.memory_intents import is_memory_request
from sash.intents.situation import PlannedCall, Reply, Situation
from sash.intents.words.phrases import Match

REMEMBER_TOOL, FORGET_TOOL = "remember", "forget"
# What is said about one of these days does not stay so: "it's my birthday today".
_PASSING = frozenset({"today", "tonight", "tomorrow", "this_morning", "this_afternoon", "tomorrow_morning"})
# Words of a fact that stays so.
_FACTS = frozenset({CALLED, "lasting"})
_SUBJECTS = frozenset({"memory.my", "mood.speaker", "mood.subject", "remark.subject"})
_BEFORE = frozenset({"talk", "join"})
# What a statement has none of: it asks for nothing.
_REQUESTS = frozenset({"item", "later", "please", "wish", "self", "mood.polite"})
_VERBS = frozenset({"ask.is", "tense.past", "mood.auxiliary", "mood.verb", "memory.name_is", "not", *_FACTS})
# English particles. Those of other languages are in their lexicons.
_SHORT_ACTS = frozenset({"on", "off", "up", "down"})
# Verbs that a home cannot carry out: "my parents came home".
_NO_REQUESTS = frozenset({"home", "away", "done", "enter", "broken", "happen", "used", "moving", "run"})


async def note_statement(situation: Situation) -> Reply | None:
    """Note a lasting fact: "my cat is called Tiger". Return None for any other sentence."""
    utterance, sentence = situation.utterance, situation.sentence
    if utterance.has_model or REMEMBER_TOOL not in utterance.tools or is_memory_request(sentence.text):
        return None
    if not tells_lasting(situation):
        return None
    return Reply(calls=(PlannedCall(REMEMBER_TOOL, {"text": sentence.text.strip().rstrip(".!")}),))


def tells_lasting(situation: Situation) -> bool:
    """Return whether a sentence tells something that stays so: a name, a birthday, an allergy."""
    sentence = situation.sentence
    start = _find_subject(situation)
    facts = [m for m in sentence.matches if m.tag in _FACTS and start is not None and m.start > start]
    told = {place for match in facts for place in match.places}
    if any(match.value in _PASSING for match in sentence.find("time")):
        return False
    if not facts or any(m.tag == "tense.past" and told.isdisjoint(m.places) for m in sentence.matches):
        return False
    verbs = [match for match in sentence.matches if match.tag == "ask.is"] or facts
    # "My cat is called" names nothing yet.
    last = max(match.end for match in verbs)
    return any(word[0].isalnum() for word in sentence.words[last:])


async def forget_last(situation: Situation, said: Sequence[str]) -> Reply | None:
    """Return the call that forgets the newest fact; None if no sentence of `said` told one."""
    facts = await situation.utterance.dialogue.list_facts()
    read = situation.reader.read
    is_told = any(is_memory_request(t) or tells_lasting(replace(situation, sentence=read(t))) for t in said)
    if not facts or not is_told or FORGET_TOOL not in situation.utterance.tools:
        return None
    return Reply(calls=(PlannedCall(FORGET_TOOL, {"about": facts[-1]}),))


def report_forgotten(situation: Situation) -> Reply | None:
    """Return the report that a fact was forgotten; None if another call was made."""
    results = situation.utterance.results
    if len(results) != 1 or results[0].name != FORGET_TOOL:
        return None
    facts = "; ".join(results[0].parse_object().get("forgotten") or ())
    return Reply(situation.writer.say("memory.forgotten", fact=facts)) if facts else None


def acknowledge(situation: Situation) -> Reply | None:
    """Return the answer to a remark that asks for nothing: "I am tired". None for any other sentence."""
    start = _find_subject(situation)
    if start is None:
        return None
    sentence, told = situation.sentence, [m for m in situation.sentence.matches if m.start >= start]
    # "It's" is a subject with its verb.
    is_clause = any(m.tag == "remark.subject" and len(m.places) > 1 and m.start == start for m in told)
    if not is_clause and any(match.kind in ("kind", "name") for match in told):
        return None
    # An unknown word after a subject is its verb: "it smells".
    known = {place for match in told for place in match.places}
    is_pronoun = any(m.tag in ("mood.speaker", "mood.subject") and m.start == start for m in told)
    has_verb = is_pronoun and start + 1 < len(sentence.words) and start + 1 not in known
    if not (is_clause or has_verb or any(m.tag in _VERBS for m in told)):
        return None
    return Reply(situation.writer.say("talk.remark"), is_guess=True)


def _find_subject(situation: Situation) -> int | None:
    """Return the place of the subject that begins a statement; None if the sentence asks for something."""
    sentence, lexicon = situation.sentence, situation.reader.lexicon
    is_request = any(_REQUESTS & {m.kind, m.tag} and m.tag != "item.ask" for m in sentence.matches)
    if is_request or "?" in sentence.words:
        return None
    talk = {place for m in sentence.matches if m.kind in _BEFORE for place in m.places}
    first = next((n for n, w in enumerate(sentence.words) if n not in talk and w[0].isalnum()), None)
    if first is None or any(_is_act(situation, match) for match in sentence.find("do")):
        return None
    begins = {match.tag for match in sentence.matches if match.start == first}
    if begins & _SUBJECTS:
        return first
    if any(tag.startswith(("ask.", "do.", "condition.", "any.")) for tag in begins):
        return None
    is_name = any(match.tag == "ask.is" and match.start == first + 1 for match in sentence.matches)
    return first if is_name or sentence.words[first] in lexicon.articles else None


def _is_act(situation: Situation, match: Match) -> bool:
    """Return whether a phrase says what a home is to do, and is no part of a fact: "I work from home"."""
    sentence, words = situation.sentence, {situation.sentence.words[place] for place in match.places}
    told = {place for m in sentence.matches if m.tag in _FACTS for place in m.places}
    if match.value == "make" and any(
        m.tag == "mood.speaker" and m.start == 0 and m.end == match.start for m in sentence.matches
    ):
        return False  # "We have two cats".
    is_particle = words <= _SHORT_ACTS | situation.reader.lexicon.particles
    return match.value not in _NO_REQUESTS and not is_particle and not told.issuperset(match.places)
