"""The loop of one turn: get an answer, run the tools it calls, repeat until the answer calls none.

The loop writes every step through the journal. After a crash, a new loop gets the written steps and continues
with the first missing step.
"""

import asyncio
import logging
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from sash.engine.budget import BudgetReached, TurnBudget
from sash.engine.ceiling import LimitsInForce
from sash.engine.context import Context
from sash.engine.foreign_code import run_foreign
from sash.engine.grounding import asks_for_text, claim, is_question
from sash.engine.parts import Parts
from sash.engine.redaction import redact, redact_json
from sash.engine.turn import fired_turn
from sash.engine.turn.budget_sentences import describe_stop
from sash.engine.turn.caller import find_place
from sash.engine.turn.dialogue import SessionDialogue
from sash.engine.turn.journal import Journal
from sash.engine.turn.progress import Progress
from sash.engine.turn.tool_calls import ToolCalls
from sash.engine.turn.turn_context import TurnContext
from sash.engine.turn_tools import TurnTools
from sash.engine.window_cache import CachedWindow
from sash.errors import AnswerCutOff, ModelError
from sash.home.reported_states import reports_present_state
from sash.models.catalog import OFFLINE
from sash.ports.intents import Utterance, make_local_answer
from sash.ports.model import Answer, ModelRequest, collect
from sash.ports.turns import Turn
from sash.values.prompts import PartUse, PromptPart, PromptRecord, SentPrompts, hash_json
from sash.values.stats import Bill
from sash.values.steps import AnswerSentBack, Plan, ToolCall
from sash.values.waiting_turns import FiredTurn

# A message accepts an id of at most 256 characters, and a number may follow this one.
MAX_CALL_ID_CHARS = 240
MAX_NAME_CHARS = 128
MAX_SENTENCE_CHARS = 1000
# An answer that was cut off is requested this many times more.
MAX_RETRIES = 1
# Seconds that a waiting turn which has fired waits for the home.
HOME_WAIT_S = 30.0
EMPTY_ANSWER = "The model has said nothing."

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Answered:
    """The answer that ends a turn. `stopped_by` names the budget that ended it early."""

    answer: Answer
    bill: Bill | None = None
    stopped_by: str | None = None


class Loop:
    """Runs one turn until it has an answer or waits for an approval."""

    def __init__(
        self,
        parts: Parts,
        turn: Turn,
        limits: LimitsInForce,
        window: CachedWindow,
        progress: Progress,
        journal: Journal,
        budget: TurnBudget,
        tool_calls: ToolCalls,
        tools: TurnTools,
    ) -> None:
        self._parts = parts
        self._session = turn.session
        self._continuation = turn.continuation
        self._request = turn.continuation.request
        self._window = window
        self._progress = progress
        self._journal = journal
        self._budget = budget
        self._limits = limits
        self._tools = tools
        self._turn_context = TurnContext(parts, turn, window, progress, journal, limits.model, tools)
        self._tool_calls = tool_calls
        self._context: Context | None = None
        self._recorded: Context | None = None

    async def run(self) -> Answered | None:
        """Return the answer, or None if the turn waits for an approval."""
        timeout = asyncio.timeout(self._limits.budgets.max_duration_ms / 1000)
        try:
            async with timeout:
                return await self._run()
        except TimeoutError:
            if not timeout.expired():
                raise
            self._budget.write_off()
            self._tool_calls.stop()
            return self._stop("max_duration_ms")

    async def _run(self) -> Answered | None:
        await self._tools.load()
        while True:
            if self._progress.open_calls and not await self._tool_calls.run():
                return None
            if reached := self._reached_budget():
                return self._stop(reached)
            try:
                answer, bill = await self._next_answer()
            except BudgetReached as passed:
                return self._stop(passed.budget)
            if answer.tool_calls:
                await self._plan(answer, bill)
                continue
            if not answer.content.strip():
                answer = replace(answer, content=EMPTY_ANSWER)
            correction = self._correct(answer)
            if correction is not None and self._progress.sent_back is None:
                await self._journal.write_long(len(answer.content), AnswerSentBack(answer.content, bill))
                continue
            self._progress.add_bill(bill)
            if correction is not None:
                answer = replace(answer, content=correction)
            stopped_by = "max_output_tokens" if answer.stop_reason == "length" else None
            return Answered(answer, bill, stopped_by)

    async def _next_answer(self) -> tuple[Answer, Bill | None]:
        """Return the next answer: from an intent (then without a bill) or from the model."""
        await self._journal.check()
        await self._parts.pacing.wait(self._session.owner)
        if self._request.fired is not None:
            return await self._follow(self._request.fired), None
        if not self._progress.has_model_call and (local := await self._understand()):
            self._progress.language = local.language
            return local, None
        if self._context is None:
            self._context = await self._turn_context.build()
        context, messages = self._context, self._progress.prompt()
        size = sum([len(message["content"]) for message in messages])
        count, run_long = self._parts.contexts.count_messages, self._parts.long_work.run
        counted = context.tokens + await run_long(self._session.owner, size, count, messages)
        config = await self._budget.reserve(counted, self._limits.model)
        request = ModelRequest([*context.messages, *messages], context.tools, config)
        await self._record_prompt(context, messages)
        if not self._turn_context.is_for_other_model and self._request.allow_tools:
            self._window.last_prompt = request.messages
        answer = await self._ask_model(request, counted)
        return answer, self._budget.settle(answer)

    async def _record_prompt(self, context: Context, messages: list[dict[str, Any]]) -> None:
        """Let the journal store what is sent to the model. The parts of a context are stored once."""
        parts, window = self._parts, self._window
        uses: tuple[PartUse, ...] = ()
        new: tuple[PromptPart, ...] = ()
        if self._recorded is not context:
            uses, new = window.prompts.record(
                context, window.window, window.rendered, parts.renderer.render, parts.clock.now()
            )
            self._recorded = context
        size = sum(len(str(part.body)) for part in new)
        clean = await parts.long_work.run(self._session.owner, size, _redact_parts, new)
        model = parts.model_name(self._limits.model)
        record = PromptRecord(self._journal.step_count, model, hash_json(*messages), uses)
        self._journal.prompts += SentPrompts((record,), clean)

    async def _ask_model(self, request: ModelRequest, counted: int) -> Answer:
        """Ask the model. An answer that is cut off is requested once more."""
        hub, retries = self._parts.hub, 0
        # Nothing can act while the model writes, so this holds for the whole text.
        is_provisional = self._may_correct()
        while True:
            text = self._journal.begin_text(is_provisional=is_provisional)
            try:
                stream = self._parts.model.stream(request)
                answer: Answer = await run_foreign(collect(stream, partial(hub.write, text)))
                hub.end_text(text, is_complete=True)
                return answer
            except ModelError as error:
                is_cut_off = isinstance(error, AnswerCutOff)
                if text.written or is_cut_off:
                    self._budget.write_off(text.written)
                else:
                    self._budget.release()
                if retries == MAX_RETRIES or not is_cut_off:
                    raise
                retries += 1
                _logger.warning("%s: the model is asked again", error.message)
                config = await self._budget.reserve(counted, self._limits.model)
                request = replace(request, config=config)
            finally:
                hub.end_text(text)

    async def _understand(self) -> Answer | None:
        """Return the answer of the first intent that understands the message, or None.

        Intents understand short sentences, so a long message goes to the model.
        """
        is_sentence = not self._request.attachments and len(self._request.message) <= MAX_SENTENCE_CHARS
        if self._session.is_task or not is_sentence:
            return None
        tools = self._tools.registry.names if self._request.allow_tools else frozenset()
        area, language = find_place(self._session, self._request)
        utterance = Utterance(
            self._request.message,
            self._session,
            tools,
            self._progress.list_results(),
            area,
            language,
            self._request.caller,
            SessionDialogue(self._parts.store, self._continuation, self._session, self._parts.notes),
            has_model=self._parts.model_name(self._limits.model) != OFFLINE,
            planned_in=self._progress.language,
        )
        for intents in self._parts.intents:
            try:
                if answer := await run_foreign(intents.understand(utterance)):
                    return answer  # type: ignore[no-any-return]
            except Exception as error:
                _logger.warning("%s failed: %s", type(intents).__name__, redact(str(error)))
        return None

    async def _follow(self, fired: FiredTurn) -> Answer:
        """Return the tool calls of a waiting turn that has fired, and after them the report to the user.

        The decision whether they are made is a step of the turn, so a resumed turn does not decide again.
        """
        parts, progress, turn = self._parts, self._progress, fired.turn
        if progress.fired is None:
            if turn.needs_home and parts.home is not None:
                await parts.home.wait_briefly(HOME_WAIT_S)  # After a restart it may still be connecting.
            step = fired_turn.decide(fired, parts.find_index(), parts.clock.now())
            self._journal.write(step)
        else:
            step = progress.fired
        if step.outcome == "due" and turn.calls and not progress.plans:
            return fired_turn.make_calls(turn)
        now = parts.clock.now().astimezone(parts.local_time.zone)
        _, language = find_place(self._session, self._request)
        return make_local_answer(fired_turn.write_report(turn, step, progress, now, language))

    async def _plan(self, answer: Answer, bill: Bill | None) -> None:
        """Write the answer as a `Plan` step, and a `ToolCall` step for each of its tool calls.

        Call ids are made unique within the turn, because some models give the same id again.
        """
        taken, calls = set(self._progress.call_ids), []
        for call in answer.tool_calls:
            own_id = _choose_call_id(call["id"])
            call_id, n = own_id, 1
            while call_id in taken:
                n += 1
                call_id = f"{own_id}-{n}"
            taken.add(call_id)
            function = call["function"]
            named = function | {"name": _choose_name(function["name"])}
            calls.append(call | {"id": call_id, "function": named})
        steps = [ToolCall(c["id"], c["function"]["name"], c["function"]["arguments"]) for c in calls]
        size = len(answer.content) + sum([len(step.arguments) for step in steps])
        plan = Plan(answer.content, tuple(calls), bill, tuple(self._budget.lost_bills))
        await self._journal.write_long(size, plan, *steps)
        self._budget.lost_bills.clear()
        for step in steps:
            # The tool gets the arguments as the model wrote them; the journal has them without secrets.
            self._progress.open_calls[step.call_id].arguments = step.arguments

    def _reached_budget(self) -> str | None:
        budgets, progress = self._limits.budgets, self._progress
        if progress.plans >= budgets.max_steps:
            return "max_steps"
        if progress.tool_calls > budgets.max_tool_calls:
            return "max_tool_calls"
        if progress.total_tokens >= budgets.max_tokens_per_turn:
            return "max_tokens_per_turn"
        return None

    def _may_correct(self) -> bool:
        """Return True if an answer of the model is checked for claims of actions that no tool performed.

        If the turn has no tool that acts, no answer is corrected.
        """
        is_checked = self._limits.policy.grounded_answers and self._tools.registry.can_act
        message = self._request.message
        return is_checked and not (self._progress.has_acted or is_question(message) or asks_for_text(message))

    def _correct(self, answer: Answer) -> str | None:
        """Return a true sentence if the answer claims an action that no tool performed, else None."""
        if answer.local or not self._may_correct():
            return None
        looked = self._progress.tool_calls > 0
        correction = claim(answer.content, looked=looked, is_so=self._is_so)
        tried = [
            f"{action.name}: {'no effect seen' if action.verified is False else action.outcome}"
            for action in self._progress.actions
        ]
        return f"{correction} ({'; '.join(tried)})" if correction and tried else correction

    def _is_so(self, sentence: str) -> bool:
        """Return True if a sentence reports a state that the model was told and that the home has now."""
        index = self._parts.find_index()
        return index is not None and reports_present_state(index, sentence, self._request.message)

    def _stop(self, budget: str) -> Answered:
        """Return a final answer that names the reached budget, with what the model has said so far."""
        known = [m["content"] for m in self._progress.messages if m["role"] == "assistant" and m["content"]]
        _, language = find_place(self._session, self._request)
        return Answered(Answer(describe_stop(budget, known[-1:], language)), stopped_by=budget)


def _redact_parts(parts: tuple[PromptPart, ...]) -> tuple[PromptPart, ...]:
    return tuple(part._replace(body=tuple(redact_json(part.body))) if part.body else part for part in parts)


def _choose_call_id(given: str) -> str:
    """Return the id that a model gave to a tool call, or "call" if the id cannot be stored unchanged.

    An id cannot be stored if it is empty or too long, or if it looks like a secret, even with a number.
    """
    numbered = f"{given}-99"
    is_storable = 0 < len(given) <= MAX_CALL_ID_CHARS and redact(numbered) == numbered
    return given if is_storable else "call"


def _choose_name(given: str) -> str:
    """Return the tool name that a model gave, or "unnamed" if it is empty, long, or looks like a secret."""
    is_storable = 0 < len(given) <= MAX_NAME_CHARS and redact(given) == given
    return given if is_storable else "unnamed"
