"""Reads an exported session. An export may come from anywhere, so all of it is checked.

The ids of an export are replaced by new ones, unless the export proves that this store made it for this
owner: then the owner moves a session back.
"""

import hmac
import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from datetime import datetime, timedelta
from typing import Any, get_args

from pydantic import ValidationError

from sash.engine.notes import MAX_NOTES, clean_preferences
from sash.engine.redaction import clean_object, redact_json
from sash.engine.session_export import FORMAT, read_ids, sign_ids
from sash.engine.turn.progress import Progress
from sash.engine.window_cache import evict_oldest, is_too_large
from sash.errors import InvalidExport, SashError
from sash.memory.tokens import TokenCounter
from sash.memory.window import Window
from sash.ports.model import check_options
from sash.ports.session_rules import MAX_OPEN_TURNS
from sash.ports.store import Bundle, StoredMessage, StoredStep
from sash.values.bounds import MAX_COUNT
from sash.values.codec import adapter
from sash.values.continuations import UNDER_WAY, Continuation, ContinuationRequest
from sash.values.faults import describe_faults
from sash.values.messages import (
    LOCAL_TAG,
    OFFLINE_TAG,
    RECORDED_TAG,
    RESERVED_TAGS,
    ConversationWindow,
    MessageEntry,
    built_in_tags,
    refuse_reserved,
)
from sash.values.requests import TagFilter
from sash.values.sessions import MAX_INSTRUCTIONS_CHARS, Fact, Pin, Session
from sash.values.steps import Plan, Step, bill_steps
from sash.values.validation import (
    MAX_DOLLARS,
    MAX_NOTE_CHARS,
    check_attachment,
    check_depth,
    check_size,
    check_tool_calls,
)
from sash.values.waiting_turns import MAX_WAITING_TURNS

# Clocks of machines differ, so that an export may come from a little later.
MAX_CLOCK_DIFFERENCE = timedelta(days=1)
# A redacted text may be longer than the text that was checked.
REDACTION_FACTOR = 4
MAX_MEMORY_CHARS = 64 << 10

_TYPE = re.compile(r"[\w.+-]{1,100}/[\w.+-]{1,100}(; ?charset=[\w-]{1,40})?", re.ASCII)
_ID = re.compile(r"[0-7][0-9A-HJKMNP-TV-Z]{25}")
_WITH_TEXT = ("session", "continuations", "steps", "messages", "waiting_turns")
_PARTS = {part.name: part.type for part in fields(Bundle)}


@dataclass(frozen=True, slots=True)
class ImportRules:
    """The parts of the runtime that an import needs."""

    owner: str
    now: datetime
    export_key: bytes
    new_id: Callable[[], str]
    reserved_options: frozenset[str]
    max_message_bytes: int
    counter: TokenCounter
    render: Callable[[MessageEntry], dict[str, Any]]


def read_export(data: Any, rules: ImportRules) -> Bundle:
    """Read an export for an owner. Raise `InvalidExport` if it is damaged.

    Turns that were running or queued become interrupted.
    """
    if not isinstance(data, dict) or any(data.get(key) != value for key, value in FORMAT.items()):
        raise InvalidExport("this is not a session that Sash can import: `format` or `version` is wrong")
    try:
        check_depth(data)
        new_ids = _choose_ids(data, rules)
        bundle = Bundle(**{name: _read_part(name, data[name], new_ids) for name in _PARTS if name in data})
        if new_ids:  # It is a copy, and the original does the work.
            bundle = replace(bundle, waiting_turns=())
        bundle = _clean(bundle, rules)
    except LookupError as error:
        raise InvalidExport(f"the export is damaged: it lacks the field {error}") from error
    except (SashError, TypeError, ValueError, RecursionError, OverflowError) as error:
        raise InvalidExport(f"the export is damaged: {error}") from error
    return bundle


def _choose_ids(data: dict[str, Any], rules: ImportRules) -> dict[str, str]:
    """Return new ids by the ids of the export. Empty if the export keeps its ids."""
    ids = read_ids(data)
    signature = data.get("signature")
    own = sign_ids(rules.owner, ids, rules.export_key)
    if isinstance(signature, str) and hmac.compare_digest(signature.encode(), own.encode()):
        return {}
    return {old: rules.new_id() for old in sorted(ids)}


def _read_part(name: str, value: Any, new_ids: dict[str, str]) -> Any:
    """Return a part of the bundle. Records are read one by one, so that other threads can run."""
    kinds = get_args(_PARTS[name])
    if not kinds or kinds[-1] is not Ellipsis:
        return _read_record(name, _PARTS[name], value, new_ids)
    if not isinstance(value, list):
        raise InvalidExport(f"{name} must be a list")
    return tuple(_read_record(name, kinds[0], record, new_ids) for record in value)


def _read_record(name: str, kind: Any, record: Any, new_ids: dict[str, str]) -> Any:
    text = json.dumps(redact_json(record) if name in _WITH_TEXT else record)
    if new_ids and name != "artifacts":
        text = _ID.sub(lambda found: new_ids.get(found[0], found[0]), text)
    try:
        value = adapter(kind).validate_json(text)
        if isinstance(value, StoredStep):
            _check_body(value)
    except ValidationError as error:
        raise InvalidExport(f"{name}: {describe_faults(error.errors(include_url=False))}") from error
    if new_ids and name == "artifacts":
        return replace(
            value,
            ref=replace(value.ref, id=new_ids[value.ref.id]),
            session_id=new_ids.get(value.session_id, value.session_id),
        )
    return value


def _check_body(stored: StoredStep) -> None:
    """Check the types of a step's fields. The codec trusts them, because Sash writes the journal."""
    body = stored.step.body
    kind = adapter(type(body))
    kind.validate_json(kind.dump_json(body, warnings=False))
    if isinstance(body, Plan):
        check_tool_calls(body.tool_calls)


def _clean(bundle: Bundle, rules: ImportRules) -> Bundle:
    """Check the parts of a bundle and how they fit together, and adapt it to this runtime."""
    _check_turns(bundle)
    _check_messages(bundle)
    _check_artifacts(bundle)
    _check_waiting_turns(bundle)
    _check_counts(bundle)
    _check_times(bundle, rules.now + MAX_CLOCK_DIFFERENCE)
    _check_texts(bundle.session)
    for config in (bundle.session.model, *(c.request.model for c in bundle.continuations)):
        check_options(config.options if config else (), rules.reserved_options)
    for stored in bundle.messages:
        # A message may have a text and attachments of the maximum size.
        check_size(stored.message.size, 2 * REDACTION_FACTOR * rules.max_message_bytes)
    bundle, memory = _limit_window(bundle), bundle.session.memory
    turn_ids = {turn.id for turn in bundle.continuations}
    session = replace(
        bundle.session,
        memory=replace(
            memory,
            facts=tuple(_clean_fact(fact, turn_ids) for fact in memory.facts),
            pins=tuple(replace(pin, scope="session") for pin in memory.pins),
        ),
        owner=rules.owner,
        version=bundle.session.version + 1,
        preferences=clean_preferences(bundle.session.preferences),
        context=clean_object(bundle.session.context),
    )
    cleaned = replace(
        bundle,
        session=session,
        continuations=tuple(_clean_continuation(c, rules) for c in bundle.continuations),
        messages=tuple(_count_message(m, rules) for m in bundle.messages),
        artifacts=tuple(replace(a, owner=rules.owner) for a in bundle.artifacts),
        waiting_turns=tuple(replace(turn, owner=rules.owner) for turn in bundle.waiting_turns),
    )
    _check_journals(cleaned)
    return cleaned


def _clean_fact(fact: Fact, turn_ids: set[str]) -> Fact:
    """Return a fact of the session. It names its turn only if the turn is imported, too."""
    turn_id = fact.continuation_id if fact.continuation_id in turn_ids else None
    return replace(fact, scope="session", continuation_id=turn_id)


def _clean_continuation(continuation: Continuation, rules: ImportRules) -> Continuation:
    request: ContinuationRequest = continuation.request
    check_size(len(request.message.encode()), REDACTION_FACTOR * rules.max_message_bytes)
    attachments = tuple(map(check_attachment, request.attachments))
    check_size(len(json.dumps(attachments)), rules.max_message_bytes)
    clean_object(request.planner_hints)
    clean_object(request.metadata)
    refuse_reserved(TagFilter(tags=request.tags).tags)
    status = "interrupted" if continuation.status in UNDER_WAY else continuation.status
    request = replace(request, attachments=attachments)
    return replace(continuation, owner=rules.owner, status=status, request=request)


def _correct_tags(message: MessageEntry) -> MessageEntry:
    """Return a message with the tags that Sash gives to its role, and no other reserved tags of a role."""
    built_in = built_in_tags(message.role, bool(message.tool_calls))
    own = message.tags - (RESERVED_TAGS - LOCAL_TAG - OFFLINE_TAG - RECORDED_TAG)
    return replace(message, tags=own | built_in)


def _count_message(stored: StoredMessage, rules: ImportRules) -> StoredMessage:
    """Count the tokens of a message in the window again: a budget relies on the count."""
    stored = replace(stored, message=_correct_tags(stored.message))
    if not stored.in_window:
        return stored
    shown = rules.render(stored.message)
    count = rules.counter.count_message(shown["content"], shown.get("tool_calls", ()), shown.get("name"))
    return replace(stored, message=replace(stored.message, token_count=count))


def _check_artifacts(bundle: Bundle) -> None:
    for artifact in bundle.artifacts:
        if artifact.session_id != bundle.session.id:
            raise InvalidExport("an artifact belongs to another session")
        if not _TYPE.fullmatch(artifact.ref.type):
            raise InvalidExport("an artifact has an unknown type")
        if artifact.ref.size != len(artifact.data):
            raise InvalidExport("the size of an artifact is wrong")


def _check_waiting_turns(bundle: Bundle) -> None:
    turns = bundle.waiting_turns
    if len(turns) > MAX_WAITING_TURNS:
        raise InvalidExport(f"a session has at most {MAX_WAITING_TURNS} waiting turns")
    if any(turn.session_id != bundle.session.id for turn in turns):
        raise InvalidExport("a waiting turn belongs to another session")
    if len({turn.id for turn in turns}) < len(turns):
        raise InvalidExport("a waiting turn occurs twice")


def _check_turns(bundle: Bundle) -> None:
    """Raise `InvalidExport` for turns and steps that do not fit together."""
    turns = bundle.continuations
    if any(turn.session_id != bundle.session.id for turn in turns):
        raise InvalidExport("a turn belongs to another session")
    keys = [turn.request.idempotency_key for turn in turns if turn.request.idempotency_key]
    if len(set(keys)) < len(keys):
        raise InvalidExport("an idempotency_key occurs twice")
    if sum(turn.status == "awaiting_approval" for turn in turns) > MAX_OPEN_TURNS:
        raise InvalidExport(f"more than {MAX_OPEN_TURNS} turns hold the session")
    if not {turn.id for turn in turns}.issuperset(stored.continuation_id for stored in bundle.steps):
        raise InvalidExport("a step has no continuation")
    if not all(stored.step.cursor and stored.step.n for stored in bundle.steps):
        raise InvalidExport("a step has the number 0")
    if len({stored.step.cursor for stored in bundle.steps}) < len(bundle.steps):
        raise InvalidExport("a step occurs twice")


def _check_messages(bundle: Bundle) -> None:
    """Raise `InvalidExport` for messages that do not fit together."""
    ids = {stored.message.id for stored in bundle.messages}
    is_final: dict[str | None, bool] = {turn.id: turn.is_final for turn in bundle.continuations}
    is_final[None] = True  # A message that was imported before has no turn.
    for position, stored in enumerate(bundle.messages, 1):
        if stored.session_id != bundle.session.id:
            raise InvalidExport("a message belongs to another session")
        if stored.continuation_id not in is_final:
            raise InvalidExport("the turn of a message is missing")
        if not is_final[stored.continuation_id]:
            raise InvalidExport("a message belongs to a turn that has not ended")
        if stored.position != position:
            raise InvalidExport("messages are out of order")
    if len(ids) < len(bundle.messages):
        raise InvalidExport("a message occurs twice")
    if not ids.issuperset(evicted.message_id for evicted in bundle.evicted):
        raise InvalidExport("the last eviction has an unknown message")
    if len(bundle.evicted) > len(bundle.messages):
        raise InvalidExport("the last eviction has too many messages")
    if not ids.issuperset(bundle.turn_starts):
        raise InvalidExport("a turn starts with an unknown message")


def _check_counts(bundle: Bundle) -> None:
    """Raise `InvalidExport` for numbers so great that Sash could not read them after it adds to them."""
    session, steps = bundle.session, [stored.step for stored in bundle.steps]
    counts = [session.version, session.turns_before, bundle.evicted_count]
    counts += [number for step in steps for number in (step.n, step.cursor)]
    turns = [turn.stats for turn in bundle.continuations if turn.stats is not None]
    for stats in (session.stats, *turns, bill_steps(step.body for step in steps)):
        named = {name: getattr(stats, name) for name in stats.__slots__}
        if named.pop("cost_usd") > MAX_DOLLARS:
            raise InvalidExport(f"a cost is greater than {MAX_DOLLARS:,} US dollars")
        counts += [*named.pop("durations").values(), *named.pop("errors").values(), *named.values()]
    if any(abs(count) > MAX_COUNT for count in counts):
        raise InvalidExport(f"a number is greater than {MAX_COUNT:,}")


def _check_times(bundle: Bundle, latest: datetime) -> None:
    if any(time > latest for time in _list_times(bundle)):
        raise InvalidExport("a time lies in the future")


def _list_times(bundle: Bundle) -> Iterator[datetime]:
    session = bundle.session
    yield from (session.created_at, session.updated_at)
    yield from () if session.memory.cut_at is None else (session.memory.cut_at,)
    yield from (fact.updated_at or fact.created_at for fact in session.memory.facts)
    yield from (pin.created_at for pin in session.memory.pins)
    for continuation in bundle.continuations:
        yield from (continuation.created_at, continuation.updated_at)
    yield from (stored.step.ts for stored in bundle.steps)
    yield from (stored.message.timestamp for stored in bundle.messages)
    yield from (turn.created_at for turn in bundle.waiting_turns)


def _check_texts(session: Session) -> None:
    """Raise `InvalidExport` for a memory or instructions that would make every prompt too long."""
    memory = session.memory
    notes: list[Fact | Pin] = [*memory.facts, *memory.pins]
    if max(len(memory.facts), len(memory.pins)) > MAX_NOTES:
        raise InvalidExport(f"a session keeps at most {MAX_NOTES} facts and {MAX_NOTES} pins")
    if any(len(note.text) > REDACTION_FACTOR * MAX_NOTE_CHARS or len(note.id) > 256 for note in notes):
        raise InvalidExport(f"a fact or pin is longer than {MAX_NOTE_CHARS} characters")
    if max(len(memory.digest), len(memory.summary)) > MAX_MEMORY_CHARS:
        raise InvalidExport("the digest or the summary is too long")
    if len(session.instructions or "") > REDACTION_FACTOR * MAX_INSTRUCTIONS_CHARS:
        raise InvalidExport(f"the instructions are longer than {MAX_INSTRUCTIONS_CHARS:,} characters")


def _limit_window(bundle: Bundle) -> Bundle:
    """Return a bundle whose window is not too large: its oldest turns are evicted, or all of them.

    Raise `InvalidExport` if the messages of the window do not fit together.
    """
    messages = tuple(m.message for m in bundle.messages if m.in_window)
    state = ConversationWindow(bundle.session.id, messages, turn_starts=bundle.turn_starts)
    try:
        window, _ = evict_oldest(Window.restore(state))
    except SashError as error:
        raise InvalidExport(f"its window is invalid: {error.message}") from error
    if is_too_large(window):  # One turn is. A session that runs keeps it until the next turn.
        window = Window(window.limits)
    shown = tuple(window)
    if len(shown) == len(messages):
        return bundle
    return replace(
        bundle,
        messages=tuple(replace(m, in_window=m.message.id in window) for m in bundle.messages),
        turn_starts=tuple(window.find_turn_starts()),
        evicted_count=bundle.evicted_count + len(messages) - len(shown),
    )


def _check_journals(bundle: Bundle) -> None:
    """Raise `InvalidExport` if a turn that can be resumed has steps that do not fit together."""
    steps_of: defaultdict[str, list[Step]] = defaultdict(list)
    for stored in sorted(bundle.steps, key=lambda stored: stored.step.cursor):
        steps_of[stored.continuation_id].append(stored.step)
    for turn in bundle.continuations:
        if not turn.is_final:
            try:
                Progress.from_steps(turn.request.message, tuple(steps_of[turn.id]))
            except (LookupError, AttributeError, TypeError, ValueError) as error:
                raise InvalidExport("the steps of a turn do not fit together") from error
