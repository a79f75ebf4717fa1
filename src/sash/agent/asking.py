"""How a turn gets its next answer: without a model if the sentence is understood so, else from one."""

import logging
from dataclasses import replace
from datetime import timedelta
from typing import Any

from sash.agent.context import Context, hints_text
from sash.agent.engine import Engine
from sash.agent.journal import Journal
from sash.agent.loop import Asked, BudgetReached, guarded
from sash.agent.progress import Progress
from sash.agent.recall import beginnings, missing, recall_rare, render
from sash.agent.redaction import redact
from sash.agent.windows import KnownWindow
from sash.digest import DIGEST_TOKENS
from sash.errors import ModelUnreachable, SashError
from sash.intents.base import Heard, ToolResult
from sash.models.base import Answer, ModelRequest, Usage, collect, names_of
from sash.sessions import ModelConfig, last_k_for
from sash.steps import NewStep
from sash.store import Turn

# A message that is answered so much later is told what time it is.
LATE = timedelta(minutes=5)
# How often an answer that was cut off is asked for again.
ASK_AGAIN = 1
# How many tokens of recalled turns a prompt may have, as a part of the window.
PART_FOR_RECALL = 12
MOST_RECALLED = 2
# An answer of fewer tokens is none; every model can write more than the most.
LEAST_OUTPUT = 256
MOST_OUTPUT = 4096

_logger = logging.getLogger(__name__)


class Asking:
    """Asks for the answers of one turn; `known` is the window that the turn sees."""

    known: KnownWindow

    def __init__(self, engine: Engine, turn: Turn, progress: Progress, journal: Journal) -> None:
        self._engine = engine
        self._turn = turn
        self._progress = progress
        self._journal = journal
        self._config = engine.model_config(turn)
        self._context: Context | None = None
        self._parts = 0
        self._being_asked = 0
        self._others_today = 0.0

    def lost(self) -> dict[str, Any] | None:
        """Return the bill of a call that is under way, for who cancels the turn: it has to be paid for."""
        return self._engine.bill(self._config, Answer(), self._being_asked) if self._being_asked else None

    async def __call__(self) -> Asked:
        """Get the next answer: without a model if the sentence is understood so, else from the model."""
        await self._journal.check()
        progress = self._progress
        if not progress.asked_a_model and (local := await self._understand()):
            return Asked(local, None)
        if self._context is None:
            self._context = await self._build_context()
        context, said = self._context, progress.prompt()
        counted = context.tokens + self._engine.contexts.count_said(said)
        config = await self._afford(counted)
        request = ModelRequest([*context.messages, *said], context.tools, config)
        self.known.asked, self._being_asked = request.messages, counted
        try:
            answer = await self._ask_model(request)
            return Asked(answer, self._engine.bill(config, answer, counted))
        finally:
            self._being_asked = 0
            progress.reserved_usd = 0.0

    async def _ask_model(self, request: ModelRequest) -> Answer:
        """Ask the model; an answer that is cut off in the middle is asked for again."""
        engine, session, continuation = self._engine, self._turn.session, self._turn.continuation
        for again in range(ASK_AGAIN + 1):
            self._parts += 1

            def on_text(text: str) -> None:
                engine.hub.write(session.id, continuation.id, self._parts, text)

            try:
                answer: Answer = await guarded(collect(engine.model.stream(request), on_text))
                return answer
            except ModelUnreachable as error:
                if again == ASK_AGAIN or not error.data.get("cut_off"):
                    raise
                _logger.warning("%s: it is asked again", error.message)
            finally:
                engine.hub.written(session.id, continuation.id)
        raise AssertionError

    async def _understand(self) -> Answer | None:
        """Let those who understand some sentences without a model try."""
        request = self._turn.continuation.request
        if request.attachments:
            return None
        said = self._progress.transcript() if self._progress.tool_calls else ()
        results = tuple(ToolResult(m["name"], m["content"]) for m in said if m["role"] == "tool")
        names = self._engine.tools.names if request.allow_tools else frozenset()
        heard = Heard(request.message, self._turn.session, names, results)
        for intents in self._engine.intents:
            try:
                if answer := await guarded(intents.understand(heard)):
                    return answer  # type: ignore[no-any-return]
            except Exception as error:
                _logger.warning("%s failed: %s", type(intents).__name__, redact(str(error)))
        return None

    async def _build_context(self) -> Context:
        engine, session, request = self._engine, self._turn.session, self._turn.continuation.request
        await self._recall()
        tail = [
            ("recalled", self._progress.recalled or ""),
            ("time", self._late()),
            ("hints", hints_text(request.planner_hints)),
        ]
        name, last_k = engine.name(self._config), None
        if name != engine.name(session.model):
            last_k = max(session.memory.last_k, last_k_for(engine.catalog.context_window(name)))
        return engine.contexts.build(
            session,
            self.known.window,
            tuple(self.known.rendered.values()),
            engine.tools.schemas if request.allow_tools else [],
            tail,
            last_k=last_k,
        )

    def _late(self) -> str:
        """Say what time it is, if a message has waited so long that the time before it is not the time."""
        now, sent_at = self._engine.clock.now(), self._turn.continuation.created_at
        if now - sent_at < LATE:
            return ""
        return f"It is now {now.astimezone(self._engine.time_zone):%a %Y-%m-%d %H:%M}."

    async def _recall(self) -> None:
        """Bring back evicted turns that speak of what the message does and the window does not."""
        engine, session, window = self._engine, self._turn.session, self.known.window
        if not window.evicted_count or self._progress.recalled is not None:
            return
        message = self._turn.continuation.request.message
        unknown = missing(beginnings(message), self.known.texts.values())
        if not unknown and engine.embedder is None:
            return
        try:
            found = await recall_rare(
                engine.store, session.owner, session.id, message, unknown, engine.embedder
            )
        except SashError as error:
            _logger.warning("nothing was recalled: %s", error.message)
            return
        budget = (window.limits.max_tokens or DIGEST_TOKENS) // PART_FOR_RECALL
        text = render(found[:MOST_RECALLED], unknown, engine.counter.count_text, budget, engine.time_zone)
        if text:
            detail = {
                "query": unknown,
                "message_ids": [m.message.id for turn in found[:MOST_RECALLED] for m in turn.messages],
                "text": f"From earlier in this conversation, word for word:\n{text}",
            }
            [step] = self._journal.write([NewStep("retrieval", detail)])
            self._progress.add(step)

    async def _afford(self, counted: int) -> ModelConfig:
        """Refuse a call that would pass a budget, and let one that comes near to it not write too much.

        What it will cost is taken without the provider's cache, and as the provider has counted so far. It is
        reserved until the call is over, so that turns of one owner do not spend the same money twice.
        """
        budgets, progress, config = self._turn.session.budgets, self._progress, self._config
        if progress.total_tokens + counted > budgets.max_tokens_per_turn:
            raise BudgetReached("max_tokens_per_turn")
        if budgets.max_cost_per_day_usd is not None:
            owner = self._turn.continuation.owner
            self._others_today = await self._engine.spent_today(owner, progress)
        for budget, money in self._money_left().items():
            most = self._most_output(counted, money)
            if most < LEAST_OUTPUT:
                raise BudgetReached(budget)
            if most < min(MOST_OUTPUT, config.max_output_tokens or MOST_OUTPUT):
                config = replace(config, max_output_tokens=most)
        progress.reserved_usd = self._price(counted, config.max_output_tokens or MOST_OUTPUT)
        return config

    def can_pay(self, cost_usd: float) -> str | None:
        """Return which budget a tool's cost would pass, if any."""
        return next((budget for budget, money in self._money_left().items() if cost_usd > money), None)

    def _money_left(self) -> dict[str, float]:
        """Return what is left of the budgets that there are, in dollars."""
        budgets = self._turn.session.budgets
        spent = self._progress.cost_usd + sum(c.cost_usd for c in self._progress.open_calls.values())
        left = {}
        if budgets.max_cost_per_turn_usd is not None:
            left["max_cost_per_turn_usd"] = budgets.max_cost_per_turn_usd - spent
        if budgets.max_cost_per_day_usd is not None:
            left["max_cost_per_day_usd"] = budgets.max_cost_per_day_usd - spent - self._others_today
        return left

    def _most_output(self, counted: int, money: float) -> int:
        """Return how many tokens of answer so much money is enough for, behind a prompt of so many."""
        prompt, with_output = self._price(counted, 0), self._price(counted, MOST_OUTPUT)
        if with_output == prompt:
            return MOST_OUTPUT if money >= prompt else 0
        return max(0, min(2 * MOST_OUTPUT, int(MOST_OUTPUT * (money - prompt) / (with_output - prompt))))

    def _price(self, counted: int, output: int) -> float:
        """Return what a call costs at most, whichever model answers it."""
        engine, known = self._engine, self._turn.session.stats
        reported, own = known.reported_tokens, known.counted_tokens
        for bill in self._progress.usages:
            if not bill["estimated"]:
                reported, own = reported + bill["input_tokens"], own + bill["counted_tokens"]
        drift = max(1.0, reported / own) if own else 1.0
        usage = Usage(round(counted * drift), output)
        names = {engine.name(self._config), *names_of(engine.model)[1:]}
        return max(engine.catalog.price(usage, name) or 0.0 for name in names)
