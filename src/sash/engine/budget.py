"""Money: what calls cost, what an owner has spent today, and what a turn may still spend."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from sash.engine.turn.progress import Progress, billed
from sash.memory.tokens import TokenCounter
from sash.models.catalog import Catalog
from sash.ports.model import Answer, Usage
from sash.ports.store import Store, Turn
from sash.values.sessions import ModelConfig
from sash.values.stats import NO_STATS, Stats

# An answer of fewer tokens is hardly one; every model can write as many as the most.
LEAST_OUTPUT = 256
MAX_OUTPUT = 4096
_NO_LIMIT = 1 << 30


class BudgetReached(Exception):
    """The next call of the model would pass a budget, and is not made."""

    def __init__(self, budget: str) -> None:
        super().__init__(budget)
        self.budget = budget


@dataclass(slots=True)
class Spending:
    """The books of a runtime. `running` has the turns under way: whose they are, and how far they are.

    What is spent beside turns is known to this process only, for the day.
    """

    store: Store
    catalog: Catalog
    counter: TokenCounter
    today: Callable[[], datetime]
    running: dict[str, tuple[str, Progress]] = field(default_factory=dict)
    _beside: dict[str, tuple[datetime, float]] = field(default_factory=dict)

    def bill(self, asked: str | None, answer: Answer, counted: int) -> dict[str, Any]:
        """Return what an answer took, as the journal keeps it; if nobody has counted, Sash's count stands.

        `asked` is the name of the model that was asked; the one that answers may go by another.
        """
        usage, estimated = answer.usage, not answer.usage.input_tokens
        if estimated:
            output = self.counter.count_message(answer.content, answer.tool_calls)
            usage = Usage(counted, output, model=usage.model)
        return {
            "model": usage.model or asked or "",
            "input_tokens": usage.input_tokens,
            "cached_tokens": usage.cached_tokens,
            "output_tokens": usage.output_tokens,
            "reasoning_tokens": usage.reasoning_tokens,
            "counted_tokens": counted,
            "estimated": estimated,
            "cost_usd": self.catalog.price(usage, usage.model, asked),
        }

    async def spent_today(self, owner: str, but: Progress | None = None) -> float:
        """Return what an owner has spent today, and what calls under way here may cost, `but` one turn's."""
        before = dict(self.running)
        turns = await self.store.turn_stats(owner, self.today())
        ended = sum(stats.cost_usd for _, stats in turns)
        # A turn that ends while the store is read may be missing there, so it still counts as running.
        running = sum(
            progress.cost_usd + progress.reserved_usd
            for whose, progress in (before | self.running).values()
            if whose == owner and progress is not but
        )
        return ended + running + self.beside(owner)

    def beside(self, owner: str) -> float:
        """Return what was spent today beside the owner's turns."""
        day, usd = self._beside.get(owner, (None, 0.0))
        return usd if day == self.today() else 0.0

    def spend_beside(self, owner: str, usd: float) -> None:
        self._beside[owner] = (self.today(), self.beside(owner) + usd)


class TurnBudget:
    """What one turn may spend. `names` are the models that may answer it, the one that is asked first.

    `written_off` are the bills of calls that brought no answer, which no step of the journal has.
    """

    def __init__(
        self, money: Spending, turn: Turn, progress: Progress, names: tuple[str | None, ...]
    ) -> None:
        self._money = money
        self._budgets = turn.session.budgets
        self._known = turn.session.stats
        self._owner = turn.continuation.owner
        self._progress = progress
        self._names = names
        self._others_today = 0.0
        self._under_way = 0
        self.written_off: list[dict[str, Any]] = []

    async def open(self, counted: int, config: ModelConfig) -> ModelConfig:
        """Pay for a call of so many tokens, or refuse it; one that comes near to a budget may not write much.

        What it will cost is taken without the provider's cache, and as the provider has counted so far. It is
        reserved until the call is over, so that turns of one owner do not spend the same money twice.
        """
        if self._progress.total_tokens + counted > self._budgets.max_tokens_per_turn:
            raise BudgetReached("max_tokens_per_turn")
        if self._budgets.max_cost_per_day_usd is not None:
            self._others_today = await self._money.spent_today(self._owner, self._progress)
        left = self._left()
        for budget, money in left.items():
            most = self._most_output(counted, money)
            if most < LEAST_OUTPUT:
                raise BudgetReached(budget)
            if most < (config.max_output_tokens or MAX_OUTPUT):
                config = replace(config, max_output_tokens=most)
        if left:
            self._progress.reserved_usd = self._price(counted, config.max_output_tokens or MAX_OUTPUT)
        self._under_way = counted
        return config

    def close(self, answer: Answer) -> dict[str, Any]:
        """Return the bill of a call that was answered."""
        bill = self._money.bill(self._names[0], answer, self._under_way)
        self.cancel()
        return bill

    def cancel(self) -> None:
        """Take back what was reserved for a call that has cost nothing."""
        self._under_way, self._progress.reserved_usd = 0, 0.0

    def lose(self, written: str = "") -> None:
        """Count a call that brought no answer and has to be paid for all the same."""
        if self._under_way:
            self.written_off.append(self.close(Answer(written)))
            self._progress.count(self.written_off[-1])

    def lost(self) -> Stats:
        """Return what a call that is under way costs if it is cancelled now."""
        if not self._under_way:
            return NO_STATS
        return billed([self._money.bill(self._names[0], Answer(), self._under_way)])

    def can_pay(self, cost_usd: float) -> str | None:
        """Return which budget a tool's cost would pass, if any."""
        return next((budget for budget, money in self._left().items() if cost_usd > money), None)

    def _left(self) -> dict[str, float]:
        """Return what is left of the budgets that there are, in dollars."""
        budgets, progress = self._budgets, self._progress
        spent = progress.cost_usd + sum(call.cost_usd for call in progress.open_calls.values())
        left = {}
        if budgets.max_cost_per_turn_usd is not None:
            left["max_cost_per_turn_usd"] = budgets.max_cost_per_turn_usd - spent
        if budgets.max_cost_per_day_usd is not None:
            left["max_cost_per_day_usd"] = budgets.max_cost_per_day_usd - spent - self._others_today
        return left

    def _most_output(self, counted: int, money: float) -> int:
        """Return how many tokens of answer so much money is enough for, behind a prompt of so many."""
        prompt, with_output = self._price(counted, 0), self._price(counted, MAX_OUTPUT)
        if with_output == prompt:
            return _NO_LIMIT if money >= prompt else 0
        return max(0, int(min(_NO_LIMIT, MAX_OUTPUT * (money - prompt) / (with_output - prompt))))

    def _price(self, counted: int, output: int) -> float:
        """Return what a call costs at most, whichever model answers it, by all names that are known of it."""
        reported, own = self._known.reported_tokens, self._known.counted_tokens
        billed = [bill for bill in self._progress.usages if not bill["estimated"]]
        reported += sum(bill["input_tokens"] for bill in billed)
        own += sum(bill["counted_tokens"] for bill in billed)
        usage = Usage(round(counted * max(1.0, reported / own if own else 1.0)), output)
        names = {*self._names, *(bill["model"] for bill in billed)}
        return max(self._money.catalog.price(usage, name) or 0.0 for name in names)
