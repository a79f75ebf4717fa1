"""Direct calls of the tools that only read the home, outside of any turn."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

from sash.engine.foreign_code import run_foreign
from sash.engine.parts import Parts
from sash.engine.redaction import redact
from sash.engine.turn.journal import keep_artifact
from sash.errors import InvalidInput, SashError, ToolFailed, ToolNotFound
from sash.ports.tools import ToolContext
from sash.values.continuations import Action, ArtifactRef
from sash.values.sessions import Session

TIMEOUT_S = 120.0
MAX_ARGUMENTS_CHARS = 32 << 10


@dataclass(frozen=True, slots=True)
class DirectToolCall:
    """A tool call for an owner outside of any turn. `session_id` is one of the owner's sessions, or None."""

    parts: Parts
    owner: str
    session_id: str | None = None

    async def make(self, name: str, arguments: dict[str, Any]) -> Any:
        """Check the arguments, call the tool and return its result. Raise `ToolFailed` after a timeout."""
        parts = self.parts
        spec = parts.tools.specs.get(name)
        if spec is None:
            raise ToolNotFound(f"there is no tool {name!r}; the tools are: {', '.join(parts.tools.specs)}")
        if not spec.direct:
            raise InvalidInput(
                f"{name} cannot be called directly: ask the agent in a session whose policy allows it"
            )
        try:
            text = json.dumps(arguments)
        except (TypeError, ValueError) as error:
            raise InvalidInput(f"the arguments for {name} are not JSON: {error}") from error
        if len(text) > MAX_ARGUMENTS_CHARS:
            raise InvalidInput(f"the arguments for {name} are longer than {MAX_ARGUMENTS_CHARS:,} characters")
        await parts.pacing.wait(self.owner)
        checked = parts.tools.arguments(spec, text)
        session = await self._session()
        call_id = parts.new_id()
        context = ToolContext(session, "direct", call_id, self._keep, _ignore_progress, _no_past_actions)
        try:
            async with asyncio.timeout(TIMEOUT_S):
                result = await run_foreign(spec.invoke(checked, context))
        except SashError:
            raise
        except TimeoutError as error:
            raise ToolFailed(f"{name} did not answer within {TIMEOUT_S:.0f} seconds") from error
        except Exception as error:
            raise ToolFailed(redact(f"{name} failed: {type(error).__name__}: {error}")) from error
        parts.tools.check_output(spec, result)
        return await parts.clean_result(self.owner, result)

    async def _session(self) -> Session:
        if self.session_id is not None:
            return await self.parts.store.get_session(self.owner, self.session_id)
        now = self.parts.clock.now()
        return Session("none", self.owner, now, now)

    async def _keep(self, data: bytes, kind: str, name: str) -> ArtifactRef:
        if self.session_id is None:
            raise InvalidInput("the tool stores its result in a session: pass a session_id")
        return await keep_artifact(self.parts, self.owner, self.session_id, data, kind, name)


def _ignore_progress(message: str) -> None:
    """Drop a progress message: a direct call has no subscribers."""


async def _no_past_actions() -> AsyncIterator[tuple[str, Action]]:
    return
    yield
