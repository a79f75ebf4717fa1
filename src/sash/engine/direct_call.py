"""A tool that somebody calls himself, without a turn: by the same code as the agent, if it only reads."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

from sash.engine.redaction import redact, redact_result
from sash.engine.turn.engine import Engine
from sash.engine.turn.journal import keep
from sash.engine.turn.tool_calls import guarded
from sash.errors import InvalidInput, SashError, ToolFailed, ToolNotFound
from sash.ports.tools import ToolContext
from sash.values.sessions import Session
from sash.values.steps import Action, ArtifactRef

LONGEST_S = 120.0


@dataclass(frozen=True, slots=True)
class DirectToolCall:
    """A call of an owner, within one of his sessions or none."""

    engine: Engine
    owner: str
    session_id: str | None = None

    async def make(self, name: str, arguments: dict[str, Any]) -> Any:
        """Check the arguments, call the tool, and return what it returns."""
        engine = self.engine
        spec = engine.tools.specs.get(name)
        if spec is None:
            raise ToolNotFound(f"there is no tool {name!r}; the tools are: {', '.join(engine.tools.specs)}")
        if not spec.direct:
            raise InvalidInput(f"{name} changes something: ask the agent for it in a session, by its policy")
        try:
            text = json.dumps(arguments)
        except (TypeError, ValueError) as error:
            raise InvalidInput(f"the arguments for {name} are not JSON: {error}") from error
        checked = engine.tools.arguments(spec, text)
        session = await self._session()
        call_id = engine.new_id()
        context = ToolContext(session, "direct", call_id, self._keep, _say_nothing, _nothing_done)
        try:
            async with asyncio.timeout(LONGEST_S):
                result = await guarded(spec.invoke(checked, context))
        except SashError:
            raise
        except TimeoutError as error:
            raise ToolFailed(f"{name} did not answer within {LONGEST_S:.0f} seconds") from error
        except Exception as error:
            raise ToolFailed(redact(f"{name} failed: {type(error).__name__}: {error}")) from error
        engine.tools.check_output(spec, result)
        return redact_result(result)

    async def _session(self) -> Session:
        if self.session_id is not None:
            return await self.engine.store.get_session(self.owner, self.session_id)
        now = self.engine.clock.now()
        return Session("none", self.owner, now, now)

    async def _keep(self, data: bytes, kind: str, name: str) -> ArtifactRef:
        if self.session_id is None:
            raise InvalidInput("this is kept in a session: say which (session_id)")
        return await keep(
            self.engine.store, self.engine.new_id(), self.owner, self.session_id, data, kind, name
        )


def _say_nothing(message: str) -> None:
    """Nobody listens to how far it is."""


async def _nothing_done() -> AsyncIterator[tuple[str, Action]]:
    return
    yield
