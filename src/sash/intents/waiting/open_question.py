"""Joins the answer to "At what time?" with the sentence that it belongs to."""

from collections.abc import Sequence
from datetime import timedelta

from sash.intents.situation import Situation
from sash.values.continuations import Continuation

# Questions of Sash that leave a promise open, and the time in which they can be answered.
_QUESTIONS = ("later.when", "later.how_long", "later.remind_what")
MAX_AGE = timedelta(seconds=60)


def join_with_question(situation: Situation, turns: Sequence[Continuation]) -> str | None:
    """Return the last sentence with what it left out: "remind me to call mum" and "at six"."""
    last = turns[-1] if turns else None
    if situation.utterance.results or last is None or last.response is None:
        return None
    if situation.now - last.updated_at > MAX_AGE:
        return None
    asked = {situation.writer.say(key) for key in _QUESTIONS}
    if last.response.final_message not in asked or not _completes(situation, last.response.final_message):
        return None
    before = situation.reader.read(_join_earlier(turns, asked))
    clause = situation.reader.read_clause(before, 0, len(before.words))
    vague = clause.time.places if clause.time.is_later else frozenset()
    kept = " ".join(before.cut(n, n + 1) for n in range(len(before.words)) if n not in vague)
    return f"{kept.rstrip(' .?!')} {situation.utterance.text}"


def _join_earlier(turns: Sequence[Continuation], asked: set[str]) -> str:
    """Return the last sentence, with those before it that it completed."""
    text = turns[-1].request.message
    before = turns[-2] if len(turns) > 1 else None
    if before is None or before.response is None or before.response.final_message not in asked:
        return text
    return f"{_join_earlier(turns[:-1], asked).rstrip(' .?!')} {text}"


def _completes(situation: Situation, asked: str) -> bool:
    """Return whether a sentence names a time, or says what to remind of, and asks nothing."""
    sentence = situation.sentence
    clause = situation.reader.read_clause(sentence, 0, len(sentence.words))
    if clause.is_question or sentence.covers("talk"):
        return False
    if asked == situation.writer.say("later.remind_what"):
        return not clause.is_command or sentence.words[0] in ("to", "that")
    return not clause.time.is_empty
