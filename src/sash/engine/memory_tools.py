"""The agent's tools for its memory: start over, remember, forget, recall."""

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, tzinfo
from typing import Any

from sash.engine.notes import Notes
from sash.engine.recall import RecalledTurn, recall
from sash.memory.words import extract_stems, normalize
from sash.ports.embedder import Embedder
from sash.ports.session_rules import change_session
from sash.ports.store import Store
from sash.ports.tools import ToolContext, ToolSpec
from sash.values.clock import Clock
from sash.values.requests import Note
from sash.values.sessions import Session
from sash.values.steps import RESET_RESULT, RESET_TOOL

MAX_TURNS = 5


def memory_tools(
    store: Store, notes: Notes, embedder: Embedder | None, zone: tzinfo | None, clock: Clock
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
        stems = extract_stems(query)
        session = await store.get_session(context.session.owner, context.session.id)
        found = await recall(store, session.owner, session.id, query, embedder)
        known = (*(await notes.read_known(session.owner)).facts, *session.memory.facts)
        facts = [text for text in dict.fromkeys(f.text for f in known) if _matches_any(text, stems)]
        turns = sorted(found[:MAX_TURNS], key=lambda turn: turn.key)
        return {"facts": facts, "turns": [_describe_turn(turn, zone) for turn in turns]}

    async def reset(arguments: dict[str, Any], context: ToolContext) -> dict[str, bool]:
        """Drop the summary now. The end of the turn evicts the earlier turns."""
        session = context.session
        await change_session(store, session.owner, session.id, lambda found: drop_summary(found, clock.now()))
        return dict(json.loads(RESET_RESULT))

    yield ToolSpec(
        RESET_TOOL,
        "Start over: hide all earlier turns of this conversation. Facts stay.",
        _schema(),
        reset,
        safety="idempotent",
    )
    yield ToolSpec(
        "remember",
        "Note a fact that the user wants you to keep in mind, in this and all later conversations.",
        _schema(text="The fact, in one sentence."),
        remember,
        safety="idempotent",
    )
    yield ToolSpec(
        "forget",
        "Drop noted facts.",
        _schema(about="The id of a fact, or words that the facts to drop all contain."),
        forget,
        safety="idempotent",
    )
    yield ToolSpec(
        "recall",
        "Find earlier turns of this conversation that are no longer shown to you, word for word.",
        _schema(query="The words to look for. Noted facts are found, too."),
        look_back,
        safety="idempotent",
    )


def drop_summary(session: Session, now: datetime) -> Session:
    """Return a session whose summary says nothing of the turns before a reset."""
    return replace(session, memory=replace(session.memory, summary="", reset_at=now))


def _matches_any(text: str, stems: list[str]) -> bool:
    """Return True if the text has any of the stems, or if there are no stems."""
    return not stems or any(stem in normalize(text) for stem in stems)


def _schema(**texts: str) -> dict[str, Any]:
    properties = {name: {"type": "string", "description": text} for name, text in texts.items()}
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _describe_turn(turn: RecalledTurn, zone: tzinfo | None) -> dict[str, Any]:
    said = [
        {"role": m.message.name or m.message.role, "text": m.message.text}
        for m in turn.messages
        if m.message.text
    ]
    at = turn.messages[0].message.timestamp.astimezone(zone)
    return {"date": at.isoformat(timespec="minutes"), "said": said}
