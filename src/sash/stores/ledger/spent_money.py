"""Money that no turn has: of deleted turns, and of work outside of turns."""

from datetime import datetime

from sash.stores.ledger.session_ledger import Ledger
from sash.stores.rules.spent_rules import round_spent_at
from sash.values.stats import Stats


class SpentMoney:
    """Dollars by owner and quarter of an hour."""

    def __init__(self) -> None:
        self.usd: dict[tuple[str, datetime], float] = {}

    def add(self, owner: str, at: datetime, usd: float) -> None:
        if usd:
            key = (owner, round_spent_at(at))
            self.usd[key] = self.usd.get(key, 0.0) + usd

    def add_turns(self, ledger: Ledger, now: datetime) -> None:
        """Add the cost of the turns of a session that is deleted at `now`, with the running one."""
        for entry in ledger.entries.values():
            if entry.continuation.status == "running":
                ledger.interrupt(entry, now)
            turn = entry.continuation
            if turn.stats is not None:
                self.add(turn.owner, turn.updated_at, turn.stats.cost_usd)

    def list_since(self, owner: str | None, since: datetime) -> list[tuple[datetime, Stats]]:
        """Return the owner's dollars at `since` or later, oldest first, as stats. None means all owners."""
        found = [(at, usd) for (of, at), usd in self.usd.items() if owner in (None, of) and at >= since]
        return [(at, Stats(cost_usd=usd)) for at, usd in sorted(found)]

    def drop_before(self, before: datetime) -> None:
        self.usd = {key: usd for key, usd in self.usd.items() if key[1] >= before}
