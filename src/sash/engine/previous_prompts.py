"""Finds the prompts that a session sent before a turn."""

from sash.ports.store import Store
from sash.values.continuations import Continuation
from sash.values.prompts import NO_PROMPTS, SentPrompts

# The search looks at this many turns before the turn.
MAX_TURNS_BACK = 20


async def find_previous_prompts(store: Store, turn: Continuation) -> SentPrompts | None:
    """Return the prompts of the session's last turn before `turn` that asked a model.

    They are empty if the session had not asked a model before. Return None if that is unknown, because the
    prompts were dropped, or the turn is too far back.
    """
    older = await store.recent_continuations(
        turn.owner, session_id=turn.session_id, before=turn.id, limit=MAX_TURNS_BACK + 1
    )
    for each in older[:MAX_TURNS_BACK]:
        if each.stats is not None and each.stats.local_turns and not each.stats.model_calls:
            continue
        sent = await store.prompts(turn.owner, each.id)
        if sent.records:
            return sent
        if each.stats is not None and each.stats.model_calls:
            return None
    return NO_PROMPTS if len(older) <= MAX_TURNS_BACK else None
