"""One turn's execution: the loop between the ports, and the end that it leaves in the store."""

import logging
from collections import deque
from dataclasses import dataclass, replace

from sash.agent.context import build
from sash.agent.loop import Loop, Outcome
from sash.agent.progress import Progress
from sash.agent.redaction import redact, redact_json
from sash.agent.windows import KnownWindows
from sash.clock import Clock
from sash.digest import DIGEST_TOKENS, digest
from sash.errors import LeaseLost, SashError
from sash.events import Hub
from sash.ids import Ulids
from sash.models.base import Answer, Model, ModelRequest, collect
from sash.sessions import SessionStats
from sash.state import MessageEntry, turns
from sash.steps import ArtifactRef, ContinuationError, ContinuationResponse, NewStep
from sash.store import Artifact, Finish, Finished, Store, Turn
from sash.tokens import TokenCounter
from sash.tools import ToolRegistry

_logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Engine:
    """What all executions of a runtime share."""

    store: Store
    model: Model
    tools: ToolRegistry
    hub: Hub
    clock: Clock
    counter: TokenCounter
    ulids: Ulids
    windows: KnownWindows

    def new_id(self) -> str:
        return self.ulids.new(self.clock.now())


class Execution:
    """Runs one turn to its end. It is the loop's journal: what it writes has no secrets any more."""

    def __init__(self, engine: Engine, turn: Turn) -> None:
        self._engine = engine
        self._turn = turn
        self._known = engine.windows.of(turn)
        self._window = self._known.window
        self.steps = list(turn.steps)
        self.finished: Finished | None = None

    async def run(self) -> None:
        """Run the turn; whatever happens is in the store afterwards, unless the store cannot be written."""
        turn = self._turn
        loop = Loop(
            turn.session,
            turn.continuation.request,
            turn.continuation.id,
            turn.steps,
            self._engine.tools,
            self._ask,
            self,
        )
        try:
            try:
                outcome = await loop.run()
                if outcome.what == "answered":
                    await self._complete(outcome)
            except SashError as error:
                await self._fail(error.code, error.message)
            except Exception as error:
                _logger.exception("turn %s failed", turn.continuation.id)
                await self._fail("internal_error", f"{type(error).__name__}: {error}")
        except LeaseLost:
            _logger.info("turn %s was taken over or ended elsewhere", turn.continuation.id)
        except SashError as error:
            _logger.error("turn %s could not be written: %s", turn.continuation.id, error)

    async def write(self, steps: list[NewStep], *, awaiting_approval: bool = False) -> list[NewStep]:
        clean = [NewStep(step.type, redact_json(step.detail)) for step in steps]
        self.steps += await self._engine.store.append(
            self._turn.lease, clean, awaiting_approval=awaiting_approval
        )
        self._engine.hub.wake(self._turn.session.id)
        return clean

    async def keep(self, data: bytes, kind: str, name: str) -> ArtifactRef:
        is_text = kind.startswith("text/") or kind == "application/json"
        clean = redact(data.decode(errors="replace")).encode() if is_text else data
        ref = ArtifactRef(self._engine.new_id(), kind, len(clean), name)
        owner = self._turn.continuation.owner
        await self._engine.store.put_artifact(Artifact(ref, self._turn.session.id, owner, clean))
        return ref

    def tell(self, message: str) -> None:
        self._engine.hub.progress(self._turn.session.id, self._turn.continuation.id, redact(message))

    async def _ask(self, progress: Progress, allow_tools: bool) -> Answer:
        engine, session, continuation = self._engine, self._turn.session, self._turn.continuation
        said = [message.to_openai() for message in progress.transcript()]
        window = tuple(self._known.rendered.values())
        parts = build(session.memory, window, said, continuation.request.planner_hints)
        request = ModelRequest(
            [message for part in parts for message in part.messages],
            engine.tools.schemas() if allow_tools else [],
            session.model,
        )

        def on_text(text: str) -> None:
            whole_words = text[: max(text.rfind(" "), text.rfind("\n")) + 1]
            engine.hub.write(session.id, continuation.id, progress.model_calls, redact(whole_words))

        try:
            return await collect(engine.model.stream(request), on_text)
        finally:
            engine.hub.written(session.id, continuation.id)

    async def _complete(self, outcome: Outcome) -> None:
        """End the turn with its messages, what they push out of the window, and what is left of that."""
        progress, text = outcome.progress, redact(outcome.answer.content)
        final = MessageEntry("assistant", text, tags=frozenset({"output"}))
        messages = tuple(map(self._stamp, (*progress.transcript(), final)))
        evicted = [message for added in messages for message in self._known.add(added)]
        snapshot = self._window.snapshot(self._turn.session.id)
        detail = {"status": "completed", "final_message": text, "stopped_by": outcome.stopped_by}
        end = Finish(
            "completed",
            (NewStep("summary", detail),),
            ContinuationResponse(
                text,
                reasoning_summary=redact(outcome.answer.reasoning) or None,
                actions=tuple(progress.actions),
                stopped_by=outcome.stopped_by,
            ),
            artifacts=tuple(progress.artifacts),
            messages=messages,
            evicted=tuple(message.id for message in evicted),
            turn_starts=snapshot.turn_starts,
            digest=self._digest(evicted) if evicted else None,
            stats=SessionStats(
                turns=1,
                steps=progress.model_calls + 1,
                tool_calls=progress.tool_calls,
                input_tokens=progress.input_tokens,
                output_tokens=progress.output_tokens,
            ),
        )
        session = self._turn.session
        try:
            await self._finish(end)
        except BaseException:
            self._engine.windows.forget(session.id)
            raise
        self._engine.windows.remember(session.id, session.version + 1, self._known)

    async def _fail(self, code: str, message: str) -> None:
        """End the turn with an error; the window stays as it was."""
        clean = redact(message)
        end = Finish(
            "failed",
            (NewStep("error", {"status": "failed", "code": code, "message": clean}),),
            error=ContinuationError(code, clean),
            stats=SessionStats(turns=1, failed_turns=1),
        )
        await self._finish(end)

    async def _finish(self, end: Finish) -> None:
        self.finished = await self._engine.store.finish(self._turn.lease, end)
        self.steps += self.finished.steps

    def _stamp(self, message: MessageEntry) -> MessageEntry:
        """Give a message of a finished turn its id, time and token count."""
        engine, now = self._engine, self._engine.clock.now()
        count = engine.counter.count_message(message.content, message.tool_calls, message.name)
        return replace(message, id=engine.ulids.new(now), timestamp=now, token_count=count)

    def _digest(self, evicted: list[MessageEntry]) -> str:
        """Add lines for what was evicted to the session's digest; the oldest lines go."""
        count_text = self._engine.counter.count_text
        new = digest(turns(evicted), count_text)
        lines = deque((*self._turn.session.memory.digest.splitlines(), *new.splitlines()))
        total = sum(count_text(line) + 1 for line in lines)
        while total > DIGEST_TOKENS:
            total -= count_text(lines.popleft()) + 1
        return "\n".join(lines)
