"""The actions of earlier turns: listed for an undo and for a person, and explained."""

import re
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Sequence
from datetime import datetime

from sash.errors import ContinuationNotFound, InvalidInput, SessionNotFound
from sash.home.index import HomeIndex
from sash.home.undo import find_last_action, find_undoable, is_undo_done
from sash.ports.store import Page, Store
from sash.values.action_explanation import ActionExplanation, PastAction, Way
from sash.values.continuations import Action, Continuation
from sash.values.requests import ENTITY_ID
from sash.values.steps import Plan, Step, ToolResult, list_actions

# An undo looks at this many turns of its session.
MAX_TURNS_TO_UNDO = 50
# An explanation looks at this many turns of each owner.
MAX_TURNS_TO_EXPLAIN = 200
# A list of actions reaches back this many turns, and reads so many of them at once.
MAX_TURNS_TO_LIST = 1000
TURNS_AT_ONCE = 50
# The place of an action in a list: the id of its turn, and its index there.
ACTION_CURSOR = re.compile(r"[0-7][0-9A-HJKMNP-TV-Z]{25}-\d{6}")
# The outcomes of actions that were tried. Those that were denied or only previewed did nothing.
TRIED = frozenset({"done", "failed", "unknown"})


async def list_past_actions(store: Store, owner: str, session_id: str) -> AsyncIterator[tuple[str, Action]]:
    """Yield the actions of a session, newest first, each with the key of its tool call."""
    turns = await store.recent_continuations(owner, session_id=session_id, limit=MAX_TURNS_TO_UNDO)
    for turn in turns:
        for action in reversed(await _list_actions(store, turn)):
            yield _make_key(turn, action), action


async def find_action_to_undo(
    store: Store, owner: str, session_id: str, index: HomeIndex | None
) -> str | None:
    """Return the key of the action that an undo reverses, or None without one or without a home."""
    past = [each async for each in list_past_actions(store, owner, session_id)]
    try:
        return None if index is None else find_last_action(past, index)[0]
    except InvalidInput:
        return None


async def explain_newest(
    store: Store, owners: Sequence[str], entity_id: str | None, session_id: str | None
) -> ActionExplanation | None:
    """Explain the newest action of these owners, or of one session, or on one entity. None without one.

    Raise `SessionNotFound` if none of the owners has the session.
    """
    turns = await _list_turns(store, owners, session_id)
    found = [(turn, action) for turn in turns for action in reversed(await _list_actions(store, turn))]
    by_key = {_make_key(turn, action): action for turn, action in found}
    for turn, action in found:
        # An undo acts on the entities of the action that it reversed.
        entity_ids = _list_entities(action) or _list_entities(by_key.get(action.undoes or ""))
        if action.outcome in TRIED and (entity_id is None or entity_id in entity_ids):
            _, steps = await store.journal(turn.owner, turn.id)
            return _explain(turn, steps, action, entity_ids)
    return None


async def list_action_page(
    store: Store,
    owner: str,
    session_id: str | None,
    limit: int,
    cursor: str | None,
    index: HomeIndex | None,
) -> Page:
    """Return a page of the owner's actions, or of one session, as `PastAction`, newest first.

    `cursor` is the `next_cursor` of the page before. The turns are read from the newest on, also for a later
    page, because an action may be undone by a newer one. Without `index`, no action can be undone.
    """
    undone: set[str | None] = set()
    turn_counts: Counter[str] = Counter()
    past: defaultdict[str, list[tuple[str, Action]]] = defaultdict(list)
    found: list[tuple[Continuation, int, Action]] = []
    async for turn in _iterate_turns(store, owner, session_id):
        actions = await _list_actions(store, turn)
        turn_counts[turn.session_id] += 1
        for place, action in reversed(list(enumerate(actions))):
            if is_undo_done(action):
                undone.add(action.undoes)
            if turn_counts[turn.session_id] <= MAX_TURNS_TO_UNDO:
                past[turn.session_id].append((_make_key(turn, action), action))
            if cursor is None or _make_cursor(turn, place) < cursor:
                found.append((turn, place, action))
        if len(found) > limit:
            break
    undoable = set() if index is None else {find_undoable(actions, index) for actions in past.values()}
    page = [await _describe(store, turn, action, undone, undoable) for turn, _, action in found[:limit]]
    is_last = len(found) <= limit
    return Page(tuple(page), None if is_last else _make_cursor(*found[limit - 1][:2]))


async def _iterate_turns(store: Store, owner: str, session_id: str | None) -> AsyncIterator[Continuation]:
    """Yield the newest turns of an owner or of a session, newest first, at most `MAX_TURNS_TO_LIST`."""
    before: str | None = None
    for _ in range(0, MAX_TURNS_TO_LIST, TURNS_AT_ONCE):
        turns = await store.recent_continuations(
            owner, session_id=session_id, before=before, limit=TURNS_AT_ONCE
        )
        for turn in turns:
            yield turn
        if len(turns) < TURNS_AT_ONCE:
            return
        before = turns[-1].id


def _make_cursor(turn: Continuation, index: int) -> str:
    """Return the place of an action in the list. Cursors sort like the actions: by turn, then in order."""
    return f"{turn.id}-{index:06}"


async def _describe(
    store: Store, turn: Continuation, action: Action, undone: set[str | None], undoable: set[str | None]
) -> PastAction:
    _, steps = await store.journal(turn.owner, turn.id)
    reversed_action = await _find_action(store, turn.owner, action.undoes) if action.undoes else None
    entity_ids = _list_entities(action) or _list_entities(reversed_action)
    explanation = _explain(turn, steps, action, entity_ids)
    key = _make_key(turn, action)
    can_undo = key in undoable and await _is_active(store, turn)
    return PastAction(explanation, action, reversed_action, key in undone, can_undo)


async def _is_active(store: Store, turn: Continuation) -> bool:
    return (await store.get_session(turn.owner, turn.session_id)).status == "active"


async def _find_action(store: Store, owner: str, key: str) -> Action | None:
    """Return the action with the key of its tool call, or None if its turn was deleted."""
    turn_id, _, call_id = key.partition(":")
    try:
        turn = await store.get_continuation(owner, turn_id)
    except ContinuationNotFound:
        return None
    return next((one for one in await _list_actions(store, turn) if one.call_id == call_id), None)


async def _list_turns(store: Store, owners: Sequence[str], session_id: str | None) -> list[Continuation]:
    """Return the newest turns of all these owners, newest first."""
    turns: list[Continuation] = []
    missing: list[SessionNotFound] = []
    for owner in owners:
        try:
            turns += await store.recent_continuations(
                owner, session_id=session_id, limit=MAX_TURNS_TO_EXPLAIN
            )
        except SessionNotFound as error:
            missing.append(error)
    if len(missing) == len(owners):
        raise missing[0]
    return sorted(turns, key=lambda turn: turn.id, reverse=True)


async def _list_actions(store: Store, turn: Continuation) -> Sequence[Action]:
    if turn.is_final and turn.response is not None:
        return turn.response.actions  # A sweep drops the steps, and keeps the response.
    _, steps = await store.journal(turn.owner, turn.id)
    return list_actions(step.body for step in steps)


def _make_key(turn: Continuation, action: Action) -> str:
    return f"{turn.id}:{action.call_id}"


def _list_entities(action: Action | None) -> tuple[str, ...]:
    """Return the ids of the entities that an action names, or whose states it has."""
    if action is None:
        return ()
    named = action.arguments.get("entity_ids")
    ids = [name for name in named if isinstance(name, str)] if isinstance(named, list) else []
    ids = [name for name in map(str.lower, ids) if ENTITY_ID.fullmatch(name)]  # A name is no id.
    return tuple(dict.fromkeys((*action.before, *action.after, *ids)))


def _explain(
    turn: Continuation, steps: Sequence[Step], action: Action, entity_ids: tuple[str, ...]
) -> ActionExplanation:
    service, fired = action.arguments.get("service"), turn.request.fired
    return ActionExplanation(
        owner=turn.owner,
        session_id=turn.session_id,
        continuation_id=turn.id,
        # What the user asked for later, and when. The message of such a turn is from Sash.
        sentence=turn.request.message if fired is None else fired.turn.summary,
        asked_at=turn.created_at if fired is None else fired.turn.created_at,
        acted_at=_find_time(turn, steps, action),
        caller=turn.request.caller,
        way=_find_way(turn, steps, action),
        tool=action.name,
        service=service.strip().lower() if isinstance(service, str) else None,
        entity_ids=entity_ids,
        outcome=action.outcome,
        verified=action.verified,
        allowed_by=action.allowed_by,
        approved=action.approved,
    )


def _find_time(turn: Continuation, steps: Sequence[Step], action: Action) -> datetime:
    """Return the time of an action's result, or of the end of its turn if the steps were dropped."""
    times = [
        step.ts for step in steps if isinstance(step.body, ToolResult) and step.body.call_id == action.call_id
    ]
    return times[0] if times else turn.updated_at


def _find_way(turn: Continuation, steps: Sequence[Step], action: Action) -> Way | None:
    """Return "model" if a model chose the action, and "local" if the sentence was understood without one.

    The plan of a model has a bill. If the steps were dropped, the stats of the turn decide. Return None if
    they do not tell.
    """
    for step in steps:
        body = step.body
        if isinstance(body, Plan) and any(call.get("id") == action.call_id for call in body.tool_calls):
            return "local" if body.bill is None else "model"
    if turn.stats is None or not (turn.stats.local_turns or turn.stats.model_calls):
        return None
    return "local" if turn.stats.local_turns else "model"
