"""The parts that all turns of one runtime share."""

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from sash.engine.budget import Spending
from sash.engine.context import ContextBuilder
from sash.engine.event_hub import EventHub
from sash.engine.local_time import LocalTime
from sash.engine.long_work import LongWork
from sash.engine.maintenance import Maintenance
from sash.engine.notes import Notes
from sash.engine.owner_pacing import OwnerPacing
from sash.engine.policy import ActionRateLimiter
from sash.engine.redaction import measure_result, redact_json, redact_result
from sash.engine.rendering import MessageRenderer
from sash.engine.turn.caller import get_language
from sash.engine.turn_tools import SessionTools, ToolFinder, TurnTools
from sash.engine.window_cache import CachedWindow, WindowCache
from sash.errors import HomeUnavailable
from sash.home.briefing import MAX_TOKENS, HomeBriefing, describe_pinned, write_briefing
from sash.home.index import HomeIndex
from sash.home.live_home import LiveHome
from sash.memory.tokens import TokenCounter
from sash.memory.window import Window
from sash.models.catalog import Catalog
from sash.ports.embedder import Embedder
from sash.ports.intents import Intents
from sash.ports.model import Model, check_options
from sash.ports.store import Store
from sash.ports.tools import ToolRegistry
from sash.values.clock import Clock
from sash.values.continuations import ContinuationRequest
from sash.values.ids import Ulids
from sash.values.owner_notes import OwnerNotes
from sash.values.sessions import ModelConfig, OperatorLimits, Session


@dataclass(frozen=True, slots=True)
class Parts:
    """The ports, caches and counters of a runtime."""

    store: Store
    model: Model
    tools: ToolRegistry
    session_tools: SessionTools
    tool_finder: ToolFinder | None
    intents: tuple[Intents, ...]
    catalog: Catalog
    embedder: Embedder | None
    home: LiveHome | None
    clock: Clock
    local_time: LocalTime
    ids: Ulids
    counter: TokenCounter
    renderer: MessageRenderer
    contexts: ContextBuilder
    windows: WindowCache
    hub: EventHub
    long_work: LongWork
    pacing: OwnerPacing
    spending: Spending
    rate_limiter: ActionRateLimiter
    maintenance: Maintenance
    notes: Notes
    household: str | None
    operator: OperatorLimits
    digest_tokens: int
    max_open_turns: int

    def new_id(self) -> str:
        return self.ids.new(self.clock.now())

    def turn_tools(self, session: Session, request: ContinuationRequest) -> TurnTools:
        """Return the tools of a turn, which are not loaded yet."""
        return TurnTools(self.session_tools, self.tool_finder, session, request)

    async def read_window(self, session: Session) -> CachedWindow:
        """Read the window of a session from the store."""
        window = await self.store.window(session.owner, session.id)
        return CachedWindow(Window.restore(window), self.renderer.render)

    def brief_home(self, session: Session, message: str = "") -> HomeBriefing | None:
        """Describe the home for a model, or return None without a home.

        Entities that `message` seems to mean come first.
        """
        if self.home is None:
            return None
        max_tokens = min(MAX_TOKENS, (session.window.max_tokens or 2 * MAX_TOKENS) // 2)
        now = self.local_time.format(self.clock.now())
        return write_briefing(self.home.index, message, now, self.counter.count_text, max_tokens)

    def describe_pinned(self, session: Session, notes: OwnerNotes) -> str:
        """Return the present states of the entities that `notes` or the notes of a session have pinned.

        The text is empty without such a pin, without a home, or while the home is unavailable.
        """
        pinned = [pin.entity_id for pin in (*notes.pins, *session.memory.pins) if pin.entity_id]
        if self.home is None or not pinned:
            return ""
        with suppress(HomeUnavailable):
            return describe_pinned(self.home.index, pinned)
        return ""

    def find_language(
        self, session: Session | None, request: ContinuationRequest | None = None
    ) -> str | None:
        """Return the language of a message, or else of its session, or else of the home; None if unknown."""
        if request is not None and request.language:
            return request.language
        own = None if session is None else get_language(session)
        return own or (None if self.home is None else self.home.language)

    def find_index(self) -> HomeIndex | None:
        """Return the index of the home; None without a home, or if the home is unavailable."""
        with suppress(HomeUnavailable):
            return None if self.home is None else self.home.index
        return None

    async def clean_result(self, owner: str, result: Any) -> Any:
        """Return the result of a tool as JSON values without secrets; other objects become text."""
        return await self.long_work.run(owner, measure_result(result), redact_result, result)

    def clean_model(self, config: ModelConfig) -> ModelConfig:
        """Return a configuration without secrets. Raise `InvalidInput` if it has reserved options."""
        check_options(config.options, self.model.reserved_options)
        return replace(config, options=redact_json(config.options))

    def model_name(self, config: ModelConfig) -> str | None:
        """Return the name of the model that a configuration selects, or None if the default has no name."""
        return config.name or self.model.name
