"""The rules of spent money."""

from dataclasses import replace
from datetime import datetime

from sash.ports.store import Bundle, StoredStep
from sash.values.continuations import Continuation
from sash.values.steps import drop_prices


def round_spent_at(at: datetime) -> datetime:
    """Return the start of the quarter of an hour. In every time zone a day begins with one."""
    return at.replace(minute=at.minute - at.minute % 15, second=0, microsecond=0)


def drop_bundle_prices(bundle: Bundle) -> Bundle:
    """Return a bundle whose turns cost nothing: their money was not spent here, or is counted already.

    A resumed turn adds up the bills of its steps, so the steps of open turns lose their prices, too.
    """
    open_turns = {turn.id for turn in bundle.continuations if not turn.is_final}

    def drop_from_turn(turn: Continuation) -> Continuation:
        return turn if turn.stats is None else replace(turn, stats=replace(turn.stats, cost_usd=0.0))

    def drop_from_step(stored: StoredStep) -> StoredStep:
        if stored.continuation_id not in open_turns:
            return stored
        return replace(stored, step=replace(stored.step, body=drop_prices(stored.step.body)))

    return replace(
        bundle,
        continuations=tuple(map(drop_from_turn, bundle.continuations)),
        steps=tuple(map(drop_from_step, bundle.steps)),
    )
