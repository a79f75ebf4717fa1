"""Money: the price of model calls, an owner's spending of the day, and the budget of a turn."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from sash.engine.turn.progress import Progress
from sash.memory.tokens import TokenCounter
from sash.models.catalog import Catalog
from sash.ports.model import Answer, Usage
from sash.ports.store import Store
from sash.ports.turns import Turn
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


@dataclass(slots=True)
class Spending:
    """The spending of a runtime. `running` maps the ids of running turns to their owner and progress."""

    store: Store
    catalog: Catalog
    counter: TokenCounter
    today: Callable[[], datetime]
    default_model: str | None = None
    operator: OperatorLimits = UNLIMITED
    running: dict[str, tuple[str, Progress]] = field(default_factory=dict)

    def bill(self, requested: str | None, answer: Answer, counted: int) -> Bill:
        """Return the bill of an answer. If the provider reports no tokens, our own counts are used.

        `requested` is the name of the model that was asked; the provider may answer under another name.
        """
        usage, is_estimated = answer.usage, not answer.usage.input_tokens
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
        """Return True if the operator limits costs, and the configuration names a model without a price.

        The operator has chosen the default model, so it is always allowed.
        """
        budgets = self.operator.budgets
        limits = (budgets.max_cost_per_turn_usd, budgets.max_cost_per_day_usd)
        is_other = config.name not in (None, self.default_model)
        return is_other and limits != (None, None) and self.catalog.price(Usage(1, 1), config.name) is None

    def price_embedding(self, name: str, texts: Sequence[str]) -> float:
        """Return the estimated dollars of an embedding. Its name may end in `/{dimensions}`."""
        usage = Usage(sum(map(self.counter.count_text, texts)))
        return self.catalog.price(usage, name, name.rpartition("/")[0]) or 0.0

    async def spent_today(self, owner: str, without: Progress | None = None) -> float:
        """Return the dollars that an owner has spent today, with the maximum cost of running model calls.

        `without` is the progress of a turn that does not count.
        """
        before = dict(self.running)
        turns = await self.store.turn_stats(owner, self.today())
        ended = sum(stats.cost_usd for _, stats in turns)
        # A turn that ends during the read may be missing in the store, so it still counts as running.
        running = sum(
            progress.cost_usd + progress.reserved_usd
            for turn_owner, progress in (before | self.running).values()
            if turn_owner == owner and progress is not without
        )
        return ended + running


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
        self._others_today_usd = 0.0
        self._reserved_tokens = 0
        self.lost_bills: list[Bill] = []

    async def reserve(self, counted: int, config: ModelConfig) -> ModelConfig:
        """Reserve money for a call with a prompt of `counted` tokens, or raise `BudgetReached`.

        The returned configuration limits the output if the money is short. The estimate ignores the
        provider's cache and corrects our count by the provider's earlier counts. The money stays reserved
        until the call ends, so parallel turns of one owner do not spend it twice.
        """
        if self._progress.total_tokens + counted > self._budgets.max_tokens_per_turn:
            raise BudgetReached("max_tokens_per_turn")
        if self._budgets.max_cost_per_day_usd is not None:
            self._others_today_usd = await self._spending.spent_today(self._owner, self._progress)
        remaining = self._remaining()
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
        """Return the bill (tokens and price) of an answered call, and release the reserved money."""
        bill = self._spending.bill(self._names[0], answer, self._reserved_tokens)
        self.release()
        return bill

    def release(self) -> None:
        """Release the reserved money of a call that cost nothing."""
        self._reserved_tokens, self._progress.reserved_usd = 0, 0.0

    def write_off(self, written: str = "") -> None:
        """Add the bill of a call without answer to `lost_bills`. `written` is the text that had arrived."""
        if self._reserved_tokens:
            self.lost_bills.append(self.settle(Answer(written)))
            self._progress.add_bill(self.lost_bills[-1])

    def running_stats(self) -> Stats:
        """Return the cost of the running model call without an answer, or no cost if none is running."""
        if not self._reserved_tokens:
            return NO_STATS
        return sum_bills([self._spending.bill(self._names[0], Answer(), self._reserved_tokens)])

    def find_exceeded(self, cost_usd: float) -> str | None:
        """Return the name of the budget that a tool's cost would exceed, or None."""
        return next((budget for budget, usd in self._remaining().items() if cost_usd > usd), None)

    def _remaining(self) -> dict[str, float]:
        """Return the remaining dollars by name of budget, for the budgets that have a limit."""
        budgets, progress = self._budgets, self._progress
        if budgets.max_cost_per_turn_usd is None and budgets.max_cost_per_day_usd is None:
            return {}
        spent = progress.cost_usd + sum(call.cost_usd for call in progress.open_calls.values())
        remaining = {}
        if budgets.max_cost_per_turn_usd is not None:
            remaining["max_cost_per_turn_usd"] = budgets.max_cost_per_turn_usd - spent
        if budgets.max_cost_per_day_usd is not None:
            remaining["max_cost_per_day_usd"] = budgets.max_cost_per_day_usd - spent - self._others_today_usd
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
