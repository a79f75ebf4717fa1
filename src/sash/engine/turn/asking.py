"""How a turn gets its next answer: without a model if the sentence is understood so, else from one."""

import logging
from datetime import timedelta

from sash.engine.budget import TurnBudget
from sash.engine.context import Context, hints_text
from sash.engine.recall import missing, recall_rare, render
from sash.engine.redaction import redact
from sash.engine.turn.engine import Engine
from sash.engine.turn.journal import Journal
from sash.engine.turn.loop import Asked
from sash.engine.turn.progress import Progress
from sash.engine.turn.tool_calls import guarded
from sash.engine.window_cache import CachedWindow
from sash.errors import HomeUnavailable, ModelError, SashError
from sash.home.briefing import MAX_CHANGED_TOKENS, changes
from sash.memory.digest import DIGEST_TOKENS
from sash.memory.words import extract_stems
from sash.ports.intents import ToolResult, Utterance
from sash.ports.model import Answer, ModelRequest, collect
from sash.ports.store import Turn
from sash.values.sessions import last_k_for
from sash.values.steps import NewStep

# A message that is answered so much later is told what time it is.
LATE = timedelta(minutes=5)
# How often an answer that was cut off is asked for again.
ASK_AGAIN = 1
# How many tokens of recalled turns a prompt may have, as a part of the window.
PART_FOR_RECALL = 12
MAX_RECALLED = 2

_logger = logging.getLogger(__name__)


class Asking:
    """Asks for the answers of one turn; `known` is the window that the turn sees."""

    known: CachedWindow

    def __init__(self, engine: Engine, turn: Turn, progress: Progress, journal: Journal) -> None:
        self._engine = engine
        self._turn = turn
        self._progress = progress
        self._journal = journal
        self._config = engine.model_config(turn)
        self._context: Context | None = None
        self._parts = 0
        self._visiting = engine.name(self._config) != engine.name(turn.session.model)
        names = (engine.name(self._config), *engine.model.names[1:])
        self.purse = TurnBudget(engine.money, turn, progress, names)

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
        config = await self.purse.open(counted, self._config)
        request = ModelRequest([*context.messages, *said], context.tools, config)
        if not self._visiting and self._turn.continuation.request.allow_tools:
            self.known.asked = request.messages
        answer = await self._ask_model(request, counted)
        return Asked(answer, self.purse.close(answer))

    async def _ask_model(self, request: ModelRequest, counted: int) -> Answer:
        """Ask the model; an answer that is cut off in the middle is asked for again."""
        engine, session, continuation = self._engine, self._turn.session, self._turn.continuation
        for again in range(ASK_AGAIN + 1):
            self._parts += 1
            written = ""

            def on_text(text: str) -> None:
                nonlocal written
                written = text
                engine.hub.write(session.id, continuation.id, self._parts, text)

            try:
                answer: Answer = await guarded(collect(engine.model.stream(request), on_text))
                return answer
            except ModelError as error:
                cut_off = bool(written) or error.data.get("cut_off")
                self.purse.lose(written) if cut_off else self.purse.cancel()
                if again == ASK_AGAIN or not error.data.get("cut_off"):
                    raise
                _logger.warning("%s: it is asked again", error.message)
                await self.purse.open(counted, self._config)
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
        heard = Utterance(request.message, self._turn.session, names, results)
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
            ("home", self._look_at_home()),
            ("time", self._late()),
            ("hints", hints_text(request.planner_hints)),
        ]
        last_k = None
        if self._visiting:
            reads = engine.catalog.context_window(engine.name(self._config))
            last_k = max(session.memory.last_k, last_k_for(reads))
        return engine.contexts.build(
            session,
            self.known.window,
            tuple(self.known.rendered.values()),
            engine.tools.schemas if request.allow_tools else [],
            tail,
            home=self.known.told,
            last_k=last_k,
        )

    def _look_at_home(self) -> str:
        """Tell of the house once, and then of what has changed; return what else there is to say of it."""
        engine, known = self._engine, self.known
        if engine.home is None:
            return ""
        try:
            index = engine.home.index
        except HomeUnavailable as error:
            return error.message
        if self._progress.told:
            return ""
        message = self._turn.continuation.request.message
        if known.told is not None and known.told.changed_tokens > MAX_CHANGED_TOKENS:
            known.tell_anew()
        if known.told is None:
            known.told = engine.overview(self._turn.session, message)
        elif news := changes(index, known.told, message):
            told = {"event": "told", "text": f"In the house, since you were told last:\n{news}"}
            [step] = self._journal.write([NewStep("observed_event", told)])
            self._progress.add(step)
        return ""

    def _late(self) -> str:
        """Say what time it is, if a message has waited so long that the time before it is not the time."""
        now, sent_at = self._engine.clock.now(), self._turn.continuation.created_at
        if now - sent_at < LATE:
            return ""
        return f"It is now {self._engine.written(now)}."

    async def _recall(self) -> None:
        """Bring back evicted turns that speak of what the message does and the window does not."""
        engine, session, window = self._engine, self._turn.session, self.known.window
        if not window.evicted_count or self._progress.recalled is not None:
            return
        message = self._turn.continuation.request.message
        unknown = missing(extract_stems(message), self.known.texts.values())
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
        text, shown = render(
            found[:MAX_RECALLED], unknown, engine.counter.count_text, budget, engine.time_zone
        )
        if text:
            detail = {
                "query": unknown,
                "message_ids": [m.message.id for turn in shown for m in turn.messages],
                "text": f"From earlier in this conversation, word for word:\n{text}",
            }
            [step] = self._journal.write([NewStep("retrieval", detail)])
            self._progress.add(step)
