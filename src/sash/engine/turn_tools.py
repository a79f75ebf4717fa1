"""The tools of one turn: those of the runtime, and those that depend on the session or the caller."""

import asyncio
import json
import logging
from collections import OrderedDict
from collections.abc import Iterable
from typing import Any

from sash.engine.foreign_code import run_foreign
from sash.engine.policy_text import describe_policy
from sash.engine.redaction import redact
from sash.ports.tools import FindTools, ToolRegistry, ToolSpec
from sash.values.continuations import ContinuationRequest
from sash.values.sessions import Session, SessionPolicy

# A turn goes on without the tools that are not found in this time.
MAX_FIND_S = 10.0
_LISTS_KEPT = 16

_logger = logging.getLogger(__name__)


class SessionTools:
    """The runtime's own tools, as a session sees them: the descriptions tell the policy in force."""

    def __init__(self, own: ToolRegistry, operator: SessionPolicy) -> None:
        self._own = own
        self._operator = operator
        self._known: OrderedDict[str, ToolRegistry] = OrderedDict()

    def choose(self, session: Session) -> ToolRegistry:
        """Return the tools of a session. A task has none. The same policy has the same registry."""
        if session.is_task:
            return ToolRegistry()
        sentences = describe_policy(session.policy, self._operator)
        known = self._known.get(sentences)
        if known is None:
            known = self._known[sentences] = self._own.tell_policy(sentences)
            if len(self._known) > _LISTS_KEPT:
                self._known.popitem(last=False)
        return known


class ToolFinder:
    """Asks `find` for the tools of a turn, and adds them to the runtime's `own` tools."""

    def __init__(self, find: FindTools, own: SessionTools) -> None:
        self._find = find
        self._own = own
        self._schemas: OrderedDict[str, list[dict[str, Any]]] = OrderedDict()

    async def find(self, session: Session, request: ContinuationRequest) -> ToolRegistry:
        """Return the runtime's own tools, followed by those of this turn in the order of their names.

        If `find` fails or takes too long, return the own tools only. A tool whose name is taken or whose
        schema is invalid is left out. The log says so. A task has no own tools.
        """
        own = self._own.choose(session)
        registry = own.copy()
        for spec in await self._ask(session, request):
            try:
                registry.register(spec)
            except Exception as error:
                _logger.warning("a tool of a turn is left out: %s", redact(str(error)))
            await asyncio.sleep(0)  # A new schema takes milliseconds to compile.
        registry.schemas = self._reuse(registry.schemas)
        return registry

    async def _ask(self, session: Session, request: ContinuationRequest) -> list[ToolSpec]:
        try:
            async with asyncio.timeout(MAX_FIND_S):
                found: Iterable[ToolSpec] = await run_foreign(self._find(session, request))
                return sorted(found, key=lambda spec: spec.name)
        except Exception as error:
            reason = redact(f"{type(error).__name__}: {error}")
            _logger.warning("session %s: turn_tools failed, so its tools are missing: %s", session.id, reason)
            return []

    def _reuse(self, schemas: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return the list of an earlier turn if it is equal, because its tokens are counted already."""
        key = json.dumps(schemas)
        known = self._schemas.setdefault(key, schemas)
        self._schemas.move_to_end(key)
        if len(self._schemas) > _LISTS_KEPT:
            self._schemas.popitem(last=False)
        return known


class TurnTools:
    """The tools of one turn. Before `load`, `registry` has the runtime's own tools only."""

    def __init__(
        self,
        own: SessionTools,
        finder: ToolFinder | None,
        session: Session,
        request: ContinuationRequest,
    ) -> None:
        self.registry = own.choose(session)
        self._finder = finder if request.allow_tools else None
        self._session = session
        self._request = request
        self._lock = asyncio.Lock()

    async def load(self) -> None:
        """Find the tools that depend on the session. Only the first call does something."""
        if self._finder is None:
            return
        async with self._lock:
            if self._finder is not None:
                self.registry = await self._finder.find(self._session, self._request)
                self._finder = None

    def lacks(self, names: Iterable[str]) -> bool:
        """Return True if one of these tools is unknown, and `load` may find it."""
        return self._finder is not None and any(name not in self.registry.specs for name in names)
