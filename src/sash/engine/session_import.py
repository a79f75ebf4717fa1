"""Reads an exported session. An export may come from anywhere, so all of it is checked."""

import json
import re
from dataclasses import asdict, replace
from typing import Any

from sash.engine.redaction import redact_json
from sash.errors import InvalidExport, SashError
from sash.memory.window import Window
from sash.ports.model import check_options
from sash.ports.store import Bundle
from sash.values.codec import adapter
from sash.values.continuations import UNDER_WAY, Continuation
from sash.values.ids import is_ulid
from sash.values.messages import ConversationWindow
from sash.values.stats import Stats

_TYPE = re.compile(r"[\w.+-]{1,100}/[\w.+-]{1,100}(; ?charset=[\w-]{1,40})?", re.ASCII)
_WITH_TEXT = ("session", "continuations", "steps", "messages")


def read_bundle(data: Any, owner: str, reserved_options: frozenset[str]) -> Bundle:
    """Read an export for an owner. Raise `InvalidExport` if it is damaged.

    Turns that were running or queued become interrupted.
    """
    if not isinstance(data, dict) or data.get("format") != "sash.session" or data.get("version") != 1:
        raise InvalidExport("this is not a session that Sash can import: `format` or `version` is wrong")
    body = {key: value for key, value in data.items() if key not in ("format", "version")}
    try:
        clean = body | {key: redact_json(body[key]) for key in _WITH_TEXT if key in body}
        bundle: Bundle = adapter(Bundle).validate_json(json.dumps(clean))
        for config in (bundle.session.model, *(c.request.model for c in bundle.continuations)):
            check_options(config.options if config else (), reserved_options)
    except (SashError, TypeError, ValueError, RecursionError) as error:
        raise InvalidExport(f"the export is damaged: {error}") from error
    _check(bundle)
    return replace(
        bundle,
        session=replace(bundle.session, owner=owner, version=bundle.session.version + 1),
        continuations=tuple(_import_continuation(c, owner) for c in bundle.continuations),
        artifacts=tuple(replace(a, owner=owner) for a in bundle.artifacts),
    )


def _import_continuation(continuation: Continuation, owner: str) -> Continuation:
    under_way = continuation.status in UNDER_WAY
    return replace(continuation, owner=owner, status="interrupted" if under_way else continuation.status)


def _check(bundle: Bundle) -> None:
    """Raise `InvalidExport` for invalid ids, and for parts that do not fit together."""
    session_id = bundle.session.id
    turns = [c.id for c in bundle.continuations]
    artifacts = [a.ref.id for a in bundle.artifacts]
    for key in (session_id, *turns, *artifacts):
        if not is_ulid(key):
            raise InvalidExport(f"the export is damaged: {key!r:.80} is not an id")
    known: set[str | None] = {*turns, None}
    for what, sound in (
        ("an artifact has an unknown type", all(_TYPE.fullmatch(a.ref.type) for a in bundle.artifacts)),
        ("an id occurs twice", len({*turns, *artifacts}) == len(turns) + len(artifacts)),
        (
            "a continuation belongs to another session",
            all(c.session_id == session_id for c in bundle.continuations),
        ),
        ("a step has no continuation", all(s.continuation_id in known for s in bundle.steps)),
        ("a message belongs to another session", all(m.session_id == session_id for m in bundle.messages)),
        ("the turn of a message is missing", all(m.continuation_id in known for m in bundle.messages)),
        ("an artifact belongs to another session", all(a.session_id == session_id for a in bundle.artifacts)),
        ("messages are out of order", all(n == m.position for n, m in enumerate(bundle.messages, 1))),
        ("a message occurs twice", len({m.message.id for m in bundle.messages}) == len(bundle.messages)),
        ("a step occurs twice", len({s.step.cursor for s in bundle.steps}) == len(bundle.steps)),
        (
            "more than one turn holds the session",
            sum(c.status == "awaiting_approval" for c in bundle.continuations) <= 1,
        ),
        (
            "a counter is negative",
            all(map(_is_sound, (bundle.session.stats, *(c.stats for c in bundle.continuations)))),
        ),
    ):
        if not sound:
            raise InvalidExport(f"the export is damaged: {what}")
    messages = tuple(m.message for m in bundle.messages if m.in_window)
    try:
        Window.restore(ConversationWindow(session_id, messages, turn_starts=bundle.turn_starts))
    except SashError as error:
        raise InvalidExport(f"the export is damaged: its window is invalid: {error.message}") from error


def _is_sound(stats: Stats | None) -> bool:
    """Return True if no counter is negative, or if there are no stats."""
    numbers = [] if stats is None else [*asdict(stats).values()]
    return all(n >= 0 for n in numbers if not isinstance(n, dict))
