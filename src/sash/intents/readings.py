"""Chooses whether a sentence is understood by itself, or with what the turns before it were about."""

from collections.abc import Sequence
from dataclasses import replace

from sash.intents.clause_completion import ClauseCompletion
from sash.intents.conversation_turn import ConversationTurn
from sash.intents.follow_ups import list_focus_ids
from sash.intents.situation import Reply, Situation
from sash.intents.topic import Topic
from sash.values.continuations import Continuation


async def reply_to_sentence(
    situation: Situation, topics: Sequence[Topic], turns: Sequence[Continuation]
) -> Reply | None:
    """Return the reply to a sentence. A complete sentence means the same after any turn.

    `topics` are what the earlier `turns` were about, newest first.
    """
    if not topics:
        return await ConversationTurn(situation, (), turns).reply()
    # Results belong to the reading that planned their calls.
    planned = replace(situation, utterance=replace(situation.utterance, results=()))
    chosen, reply = await _choose_topics(planned, topics, turns)
    if not situation.utterance.results:
        return reply
    return await ConversationTurn(_focus(situation, chosen), chosen, turns).reply()


async def _choose_topics(
    situation: Situation, topics: Sequence[Topic], turns: Sequence[Continuation]
) -> tuple[Sequence[Topic], Reply | None]:
    """Return the topics that were used (all, or none), and the reply of the better reading."""
    in_conversation = ConversationTurn(_focus(situation, topics), topics, turns)
    alone = ConversationTurn(situation, (), turns)
    needs_earlier = ClauseCompletion(situation, topics, turns).needs_earlier()
    first, other = (in_conversation, alone) if needs_earlier else (alone, in_conversation)
    reply = await first.reply()
    if not _is_settled(reply):
        second = await other.reply()
        # If the first reading asks which thing is meant, only an action of the other one is better.
        is_better = second is not None and (second.calls or reply is None or reply.is_guess)
        if is_better and _is_settled(second):
            return (() if needs_earlier else topics), second
        reply = reply or second
    return (topics if needs_earlier else ()), reply


def _focus(situation: Situation, topics: Sequence[Topic]) -> Situation:
    return replace(situation, focus_ids=list_focus_ids(topics))


def _is_settled(reply: Reply | None) -> bool:
    """Return whether a reply is certain and asks nothing back."""
    asks_back = reply is not None and reply.topic is not None and reply.topic["kind"] == "offer"
    return reply is not None and not reply.is_guess and not asks_back
