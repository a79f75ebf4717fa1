"""Money: the price of model calls, the spending of the day, and the budget of a turn."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime

from sash.engine.fixed_model import ALLOWED_OPTIONS
from sash.engine.turn.progress import Progress
from sash.memory.tokens import TokenCounter
from sash.models.catalog import Catalog
from sash.ports.model import Answer, Usage
from sash.ports.store import Store
from sash.ports.turns import Turn
from sash.values.continuations import Continuation
from sash.values.sessions import UNLIMITED, Budgets, ModelConfig, OperatorLimits
from sash.values.stats import NO_STATS, Bill, Stats, sum_bills

# A call is not made if the money buys less output than the minimum. Every model can write the maximum.
MIN_OUTPUT_TOKENS = 256
MAX_OUTPUT_TOKENS = 4096
_NO_LIMIT = 1 << 30


class BudgetReached(Exception):
    """The next model call would exceed a budget, so it is not made. `budget` is the name of that budget."""

    def __init__(self, budget: str) -> None:
        super().__init__(budget)
        self.budget = budget


@dataclass(frozen=True, slots=True)
class SpendingTurn:
    """A running turn. Of its dollars the store counts `stored_usd` already, as spent at `stored_at`."""

    owner: str
    progress: Progress
    stored_usd: float = 0.0
    stored_at: datetime | None = None

    @classmethod
    def of(cls, continuation: Continuation, progress: Progress) -> "SpendingTurn":
        """Return a claimed turn. It may have waited before, and then the store has its cost."""
        stored = continuation.stats
        return cls(
            continuation.owner, progress, 0.0 if stored is None else stored.cost_usd, continuation.updated_at
        )

    def count_stored(self, since: datetime) -> float:
        """Return the dollars that the store counts as spent since a time."""
        return self.stored_usd if self.stored_at is not None and self.stored_at >= since else 0.0


@dataclass(slots=True)
class Spending:
    """The spending of a runtime. `running` has the running turns and other paid work, by id.

    With `is_shared`, all owners share the budget of the day, as the persons of a household do.
    """

    store: Store
    catalog: Catalog
    counter: TokenCounter
    today: Callable[[], datetime]
    default_model: str | None = None
    operator: OperatorLimits = UNLIMITED
    is_shared: bool = False
    running: dict[str, SpendingTurn] = field(default_factory=dict)
    _reads: dict[int, dict[str, SpendingTurn]] = field(default_factory=dict)

    def bill(self, requested: str | None, answer: Answer, counted: int) -> Bill:
        """Return the bill of an answer. If the provider reports no tokens, our own counts are used.

        A model without a provider, such as the offline model, has no tokens: nobody pays for them.
        `requested` is the name of the model that was asked; the provider may answer under another name.
        """
        usage, is_estimated = answer.usage, not answer.usage.input_tokens
        if usage.is_free:
            return Bill(usage.model, 0, 0, 0, 0, 0, True, 0.0)
        if is_estimated:
            output = self.counter.count_message(answer.content, answer.tool_calls)
            usage = Usage(counted, output, model=usage.model)
        return Bill(
            model=usage.model or requested or "",
            input_tokens=usage.input_tokens,
            cached_tokens=usage.cached_tokens,
            output_tokens=usage.output_tokens,
            reasoning_tokens=usage.reasoning_tokens,
            counted_tokens=counted,
            estimated=is_estimated,
            cost_usd=self.catalog.price(usage, usage.model, requested),
        )

    def has_unknown_cost(self, config: ModelConfig) -> bool:
        """Return True if the operator limits costs, and the price of such a call is unknown.

        The model may have no price, or its options may choose another model or another price. The operator
        has chosen the default model, so it is always allowed.
        """
        budgets = self.operator.budgets
        if budgets.max_cost_per_turn_usd is None and budgets.max_cost_per_day_usd is None:
            return False
        is_other = config.name not in (None, self.default_model)
        has_no_price = is_other and self.catalog.price(Usage(1, 1), config.name) is None
        return has_no_price or not ALLOWED_OPTIONS.issuperset(config.options)

    def price_embedding(self, name: str, texts: Sequence[str]) -> float:
        """Return the estimated dollars of an embedding. Its name may end in `/{dimensions}`."""
        usage = Usage(sum(map(self.counter.count_text, texts)))
        return self.catalog.price(usage, name, name.rpartition("/")[0]) or 0.0

    async def spent_today(self, owner: str, without: Progress | None = None) -> float:
        """Return the dollars that count for an owner today, with the maximum cost of running calls.

        Those are the dollars of the owner, or of all owners that share the budget. `without` is the progress
        of a turn that does not count.
        """
        seen, today, payer = dict(self.running), self.today(), None if self.is_shared else owner
        # The read may lack a turn that ends during the read, so that turn still counts as running.
        self._reads[id(seen)] = seen
        try:
            usd = sum(stats.cost_usd for _, stats in await self.store.turn_stats(payer, today))
        finally:
            del self._reads[id(seen)]
        for turn in seen.values():
            if payer in (None, turn.owner):
                usd -= turn.count_stored(today)
                usd += 0.0 if turn.progress is without else turn.progress.claimed_usd
        return max(0.0, usd)

    @asynccontextmanager
    async def reserve(self, owner: str, usd: float, limit: float | None) -> AsyncIterator[bool]:
        """Reserve dollars for paid work outside of any turn, until the block ends.

        The block gets False if more than `limit` would then be spent today. None means no limit.
        """
        if limit is not None and await self.spent_today(owner) + usd > limit:
            yield False
            return
        progress = Progress(reserved_usd=usd)
        work_id = f"work {id(progress)}"
        self.start(work_id, SpendingTurn(owner, progress))
        try:
            yield True
        finally:
            self.stop(work_id)

    def start(self, work_id: str, turn: SpendingTurn) -> None:
        """Count the claimed dollars of a turn, or of other paid work, until `stop`."""
        for counted in (self.running, *self._reads.values()):
            counted[work_id] = turn

    def stop(self, work_id: str) -> None:
        """Stop counting a turn: the store has its cost."""
        self.running.pop(work_id, None)


class TurnBudget:
    """The budget of one turn. `names` are the models that may answer, the requested one first.

    `lost_bills` are the bills of model calls that gave no answer; no step of the journal has them.
    """

    def __init__(
        self,
        spending: Spending,
        turn: Turn,
        budgets: Budgets,
        progress: Progress,
        names: tuple[str | None, ...],
    ) -> None:
        self._spending = spending
        self._budgets = budgets
        self._session_stats = turn.session.stats
        self._owner = turn.continuation.owner
        self._progress = progress
        self._names = names
        self._reserved_tokens = 0
        self.lost_bills: list[Bill] = []

    async def reserve(self, counted: int, config: ModelConfig) -> ModelConfig:
        """Reserve money for a call with a prompt of `counted` tokens, or raise `BudgetReached`.

        The returned configuration limits the output if the money is short. The estimate ignores the
        provider's cache and corrects our count by the provider's earlier counts. The money stays reserved
        until the call ends, so parallel turns do not spend it twice.
        """
        if self._progress.total_tokens + counted > self._budgets.max_tokens_per_turn:
            raise BudgetReached("max_tokens_per_turn")
        remaining = await self._find_remaining()
        for budget, usd in remaining.items():
            affordable = self._affordable_output(counted, usd)
            if affordable < MIN_OUTPUT_TOKENS:
                raise BudgetReached(budget)
            if affordable < (config.max_output_tokens or MAX_OUTPUT_TOKENS):
                config = replace(config, max_output_tokens=affordable)
        if remaining:
            output = config.max_output_tokens or MAX_OUTPUT_TOKENS
            self._progress.reserved_usd = self._estimate_usd(counted, output)
        self._reserved_tokens = counted
        return config

    def settle(self, answer: Answer) -> Bill:
        """Return the bill (tokens and price) of an answered call. It replaces the reserved money."""
        bill = self._spending.bill(self._names[0], answer, self._reserved_tokens)
        self.release()
        self._progress.open_bill = bill
        return bill

    def release(self) -> None:
        """Release the reserved money of a call that cost nothing."""
        self._reserved_tokens, self._progress.reserved_usd = 0, 0.0

    def write_off(self, written: str = "") -> None:
        """Add the bill of a call without answer to `lost_bills`. `written` is the text that had arrived.

        An answer that no step has is lost, too.
        """
        if self._reserved_tokens:
            self.settle(Answer(written))
        if (bill := self._progress.open_bill) is not None:
            self.lost_bills.append(bill)
            self._progress.add_bill(bill)

    def running_stats(self) -> Stats:
        """Return the cost of the model call that runs, or whose answer no step has yet; else no cost."""
        if self._progress.open_bill is not None:
            return sum_bills([self._progress.open_bill])
        if not self._reserved_tokens:
            return NO_STATS
        return sum_bills([self._spending.bill(self._names[0], Answer(), self._reserved_tokens)])

    async def find_exceeded(self, cost_usd: float) -> str | None:
        """Return the name of the budget that a tool's cost would exceed, or None."""
        remaining = await self._find_remaining()
        return next((budget for budget, usd in remaining.items() if cost_usd > usd), None)

    async def _find_remaining(self) -> dict[str, float]:
        """Return the remaining dollars by name of budget, for the budgets that have a limit."""
        budgets, progress, remaining = self._budgets, self._progress, {}
        day_usd, others_usd = budgets.max_cost_per_day_usd, 0.0
        if day_usd is not None:
            others_usd = await self._spending.spent_today(self._owner, progress)
        spent_usd = progress.cost_usd + progress.open_calls_usd
        if budgets.max_cost_per_turn_usd is not None:
            remaining["max_cost_per_turn_usd"] = budgets.max_cost_per_turn_usd - spent_usd
        if day_usd is not None:
            remaining["max_cost_per_day_usd"] = day_usd - spent_usd - others_usd
        return remaining

    def _affordable_output(self, counted: int, usd: float) -> int:
        """Return how many output tokens `usd` dollars buy after a prompt of `counted` tokens."""
        prompt_usd = self._estimate_usd(counted, 0)
        maximum_usd = self._estimate_usd(counted, MAX_OUTPUT_TOKENS)
        if maximum_usd == prompt_usd:
            return _NO_LIMIT if usd >= prompt_usd else 0
        output = MAX_OUTPUT_TOKENS * (usd - prompt_usd) / (maximum_usd - prompt_usd)
        return max(0, int(min(_NO_LIMIT, output)))

    def _estimate_usd(self, counted: int, output: int) -> float:
        """Return the dollars of a call with these input and output tokens, for the most expensive model."""
        reported, own = self._session_stats.reported_tokens, self._session_stats.counted_tokens
        billed = [bill for bill in self._progress.bills if not bill.estimated]
        reported += sum(bill.input_tokens for bill in billed)
        own += sum(bill.counted_tokens for bill in billed)
        usage = Usage(round(counted * max(1.0, reported / own if own else 1.0)), output)
        names = {*self._names, *(bill.model for bill in billed)}
        return max(self._spending.catalog.price(usage, name) or 0.0 for name in names)
