"""The parts that a runtime's turns work with."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, tzinfo
from typing import Any

from sash.engine.budget import Spending
from sash.engine.context import ContextBuilder
from sash.engine.event_hub import EventHub
from sash.engine.policy import ActionRateLimiter
from sash.engine.window_cache import CachedWindow, WindowCache
from sash.home.briefing import MAX_TOKENS, HomeBriefing, overview
from sash.home.live import LiveHome
from sash.memory.tokens import TokenCounter
from sash.memory.window import Window
from sash.models.catalog import Catalog
from sash.ports.embedder import Embedder
from sash.ports.intents import Intents
from sash.ports.model import Model
from sash.ports.prompt import prepend_time
from sash.ports.store import Store, Turn
from sash.ports.tools import ToolRegistry
from sash.values.clock import Clock
from sash.values.ids import Ulids
from sash.values.messages import MessageEntry
from sash.values.sessions import ModelConfig, Session

# Providers refuse an empty answer, and some a question behind another.
NO_ANSWER = "(not answered)"


@dataclass(slots=True)
class Engine:
    """What all turns of a runtime share."""

    store: Store
    model: Model
    tools: ToolRegistry
    hub: EventHub
    clock: Clock
    counter: TokenCounter
    ulids: Ulids
    windows: WindowCache
    contexts: ContextBuilder
    catalog: Catalog
    intents: tuple[Intents, ...]
    embedder: Embedder | None = None
    home: LiveHome | None = None
    time_zone: tzinfo | None = None
    after_cut: Callable[[Session, list[MessageEntry]], None] = lambda session, evicted: None
    money: Spending = field(init=False)
    pace: ActionRateLimiter = field(init=False)

    def __post_init__(self) -> None:
        self.money = Spending(self.store, self.catalog, self.counter, self.today)
        self.pace = ActionRateLimiter(self.clock)

    def new_id(self) -> str:
        return self.ulids.new(self.clock.now())

    def today(self) -> datetime:
        """When the day began, where the user is."""
        now = self.clock.now().astimezone(self.time_zone)
        return now.replace(hour=0, minute=0, second=0, microsecond=0)

    def written(self, at: datetime) -> str:
        """Write a time as a model is told it."""
        return f"{at.astimezone(self.time_zone):%a %Y-%m-%d %H:%M}"

    def overview(self, session: Session, message: str = "") -> HomeBriefing | None:
        """Return what a model is told of the house as it is now, what the message speaks of first."""
        if self.home is None:
            return None
        most = min(MAX_TOKENS, (session.window.max_tokens or 2 * MAX_TOKENS) // 2)
        at = self.written(self.clock.now())
        return overview(self.home.index, message, at, self.counter.count_text, most)

    def render(self, message: MessageEntry) -> dict[str, Any]:
        """Return a message as a model is shown it: the user's with the time at which it was sent."""
        rendered = message.to_openai()
        if message.role == "user":
            rendered["content"] = self.asked(message.content, message.timestamp)
        return self.shown(rendered)

    def shown(self, said: dict[str, Any]) -> dict[str, Any]:
        """Return what was said as a model is shown it: of an answer that is not there, that it is not."""
        empty = said["role"] == "assistant" and not said["content"] and not said.get("tool_calls")
        return said | {"content": NO_ANSWER} if empty else said

    async def read_window(self, session: Session) -> CachedWindow:
        """Read the window of a session."""
        window = await self.store.window(session.owner, session.id)
        return CachedWindow(Window.restore(window), self.render)

    def asked(self, content: Any, at: datetime) -> Any:
        """Return what a user said as a model is shown it."""
        return prepend_time(content, at, self.time_zone)

    def model_config(self, turn: Turn) -> ModelConfig:
        """Return which model answers a turn, and how: what the message says, then what the session does."""
        asked, config = turn.continuation.request.model, turn.session.model
        if asked is None:
            return config
        return ModelConfig(
            asked.name or config.name,
            config.temperature if asked.temperature is None else asked.temperature,
            config.max_output_tokens if asked.max_output_tokens is None else asked.max_output_tokens,
            config.options | asked.options,
        )

    def name(self, config: ModelConfig) -> str | None:
        return config.name or self.model.name
