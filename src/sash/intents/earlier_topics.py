"""What the earlier turns of a conversation were about, also those that ended in a dropped question."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from sash.intents.acting.planner import Planner
from sash.intents.clause_completion import ClauseCompletion
from sash.intents.follow_ups import list_focus_ids
from sash.intents.situation import Situation
from sash.intents.topic import Topic, read_topic
from sash.values.continuations import Continuation
from sash.values.turn_caller import is_same_speaker

# A turn this old is not what "it" refers to.
MAX_TOPIC_AGE = timedelta(hours=2)


def read_topics(
    situation: Situation, turns: Sequence[Continuation], cancelled: Sequence[Continuation]
) -> list[Topic]:
    """Return what the earlier turns were about, newest first.

    What a model has spoken of is not known, so turns before its answer are left out if a model can be asked.
    """
    found: list[Topic] = []
    for turn in sorted([*turns, *cancelled], key=lambda turn: (turn.created_at, turn.id)):
        if situation.now - turn.updated_at > MAX_TOPIC_AGE:
            continue
        topic = _read_topic(turn) if turn.response is not None else _read_dropped(situation, turn, found)
        if topic is not None:
            found.insert(0, topic)
        elif turn.response is not None and situation.utterance.has_model and turn.has_model_call:
            found.clear()
    return found


def _read_topic(turn: Continuation) -> Topic | None:
    if turn.response is None or (topic := read_topic(turn.response.topic)) is not None:
        return None if turn.response is None else topic
    targets = [key for action in turn.response.actions for key in action.after or action.before]
    cited = [getattr(source, "entity_id", None) for source in turn.response.citations]
    ids = tuple(dict.fromkeys(filter(None, targets or cited)))
    return Topic("other", (), ids) if ids else None


def _read_dropped(situation: Situation, turn: Continuation, earlier: Sequence[Topic]) -> Topic | None:
    """Return the command of a turn that asked for an approval, and was cancelled by another sentence.

    A command of another speaker is none: "no, the bedroom one" corrects what the same person said.
    """
    if not is_same_speaker(turn.request.caller, situation.utterance.caller):
        return None
    text = turn.request.message
    utterance = replace(situation.utterance, text=text, results=())
    sentence = situation.reader.read(text, corrects=True)
    then = replace(situation, sentence=sentence, utterance=utterance, focus_ids=list_focus_ids(earlier))
    clauses = situation.reader.read_clauses(sentence)
    completion = ClauseCompletion(then, earlier, ())
    if not completion.needs_earlier():
        completion = ClauseCompletion(then, (), ())
    commands = [clause for clause in completion.complete(clauses) if completion.is_command(clause)]
    planner = Planner(then)
    ids = dict.fromkeys(key for clause in commands for key in planner.plan(clause).entity_ids)
    return Topic("command", tuple(commands), tuple(ids), is_dropped=True) if commands else None
