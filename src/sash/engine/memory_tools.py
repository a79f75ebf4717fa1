"""The agent's tools for its memory: start over, remember, forget, recall."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime, tzinfo
from typing import Any

from sash.engine.notes import Notes
from sash.engine.recall import OldMessages, QuestionContext, RecalledMessage, group_by_turn
from sash.engine.turn.caller import get_language
from sash.home.live_home import LiveHome
from sash.memory.asked_words import AskedWord, list_words_in
from sash.memory.recall_question import ANY_USER
from sash.memory.tokens import count_text
from sash.ports.embedder import Embedder
from sash.ports.session_rules import change_session
from sash.ports.store import Store
from sash.ports.tools import ToolContext, ToolSpec
from sash.values.clock import Clock
from sash.values.requests import Note
from sash.values.sessions import Session
from sash.values.steps import RESET_RESULT, RESET_TOOL

# The most tokens of old messages that the tool `recall` returns.
MAX_TOKENS = 1000


def memory_tools(
    store: Store,
    notes: Notes,
    embedder: Embedder | None,
    zone: tzinfo | None,
    clock: Clock,
    home: LiveHome | None,
) -> Iterator[ToolSpec]:
    """Yield the tools `reset_conversation`, `remember`, `forget` and `recall`."""

    async def remember(arguments: dict[str, Any], context: ToolContext) -> dict[str, str]:
        note, session = Note(text=arguments["text"]), context.session
        fact = await notes.remember(
            session.owner, None, note, asked_in=session.id, continuation_id=context.continuation_id
        )
        return {"fact": fact.text, "id": fact.id}

    async def forget(arguments: dict[str, Any], context: ToolContext) -> dict[str, list[str]]:
        about, session = Note(text=arguments["about"]), context.session
        texts = [
            fact.text
            for session_id in (None, session.id)
            for fact in await notes.forget(session.owner, session_id, about)
        ]
        return {"forgotten": list(dict.fromkeys(texts))}

    async def look_back(arguments: dict[str, Any], context: ToolContext) -> dict[str, Any]:
        query = arguments["query"]
        session = await store.get_session(context.session.owner, context.session.id)
        language = context.language or get_language(session) or (home.language if home else None)
        asker = context.caller.user_name if context.caller else None
        now = clock.now().astimezone(zone)
        old = OldMessages(store, session.owner, session.id, embedder)
        found = await old.find(query, QuestionContext(now, language, asker=asker or ANY_USER))
        best = await old.read_best(found, count_text, MAX_TOKENS)
        known = (*(await notes.read_known(session.owner)).facts, *session.memory.facts)
        asked = found.question.words
        facts = [text for text in dict.fromkeys(f.text for f in known) if _has_any(text, asked)]
        return {"facts": facts, "turns": [_describe_turn(turn, zone) for turn in group_by_turn(best)]}

    async def reset(arguments: dict[str, Any], context: ToolContext) -> dict[str, bool]:
        """Drop the summary now. The end of the turn evicts the earlier turns."""
        session = context.session
        await change_session(store, session.owner, session.id, lambda found: drop_summary(found, clock.now()))
        return dict(json.loads(RESET_RESULT))

    yield ToolSpec(
        RESET_TOOL,
        "Start over, if the user asks for it: hide all earlier turns of this conversation. Facts stay.",
        _schema(),
        reset,
        safety="idempotent",
    )
    yield ToolSpec(
        "remember",
        "Note a fact that the user wants you to keep in mind, in this and all later conversations. No states "
        "of the home.",
        _schema(text="The fact, in one sentence."),
        remember,
        safety="idempotent",
    )
    yield ToolSpec(
        "forget",
        "Drop noted facts, if the user asks for it.",
        _schema(about="The id of a fact, or words that the facts to drop all contain."),
        forget,
        safety="idempotent",
    )
    yield ToolSpec(
        "recall",
        "Find earlier messages of this conversation that you no longer see. Returns their exact text.",
        _schema(
            query="Words or a question. It may name a time. Noted facts are searched too. Only the first 12 "
            "words that are not stop words count."
        ),
        look_back,
        safety="idempotent",
    )


def drop_summary(session: Session, now: datetime) -> Session:
    """Return a session whose summary says nothing of the turns before a reset."""
    return replace(session, memory=replace(session.memory, summary="", reset_at=now))


def _has_any(text: str, words: Sequence[AskedWord]) -> bool:
    """Return True if a text has one of some words, or if there are no words."""
    return not words or bool(list_words_in(text, words))


def _schema(**texts: str) -> dict[str, Any]:
    properties = {name: {"type": "string", "description": text} for name, text in texts.items()}
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _describe_turn(turn: Sequence[RecalledMessage], zone: tzinfo | None) -> dict[str, Any]:
    said = [
        {"role": each.stored.message.name or each.stored.message.role, "text": each.text} for each in turn
    ]
    date = turn[0].stored.message.timestamp.astimezone(zone)
    return {"date": date.isoformat(timespec="minutes"), "said": said}
