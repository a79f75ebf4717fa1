"""The parts that a runtime's turns work with."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, tzinfo
from typing import Any

from sash.agent.context import ContextBuilder
from sash.agent.progress import Progress
from sash.agent.windows import KnownWindows
from sash.clock import Clock
from sash.events import Hub
from sash.ids import Ulids
from sash.intents.base import Intents
from sash.models.base import Answer, Model, Usage, name_of
from sash.models.catalog import Catalog
from sash.models.embedder import Embedder
from sash.models.timed import timed
from sash.sessions import ModelConfig, Session
from sash.state import MessageEntry
from sash.store import Store, Turn
from sash.tokens import TokenCounter
from sash.tools import ToolRegistry


@dataclass(slots=True)
class Engine:
    """What all turns of a runtime share. `running` has those under way: whose they are, and how far."""

    store: Store
    model: Model
    tools: ToolRegistry
    hub: Hub
    clock: Clock
    counter: TokenCounter
    ulids: Ulids
    windows: KnownWindows
    contexts: ContextBuilder
    catalog: Catalog
    intents: tuple[Intents, ...]
    embedder: Embedder | None = None
    time_zone: tzinfo | None = None
    _beside: dict[str, tuple[datetime, float]] = field(default_factory=dict)
    after_cut: Callable[[Session, list[MessageEntry]], None] = lambda session, evicted: None
    running: dict[str, tuple[str, Progress]] = field(default_factory=dict)

    def new_id(self) -> str:
        return self.ulids.new(self.clock.now())

    def today(self) -> datetime:
        """When the day began, where the user is."""
        now = self.clock.now().astimezone(self.time_zone)
        return now.replace(hour=0, minute=0, second=0, microsecond=0)

    def render(self, message: MessageEntry) -> dict[str, Any]:
        """Return a message as a model is shown it: the user's with the time at which it was sent."""
        rendered = message.to_openai()
        if message.role == "user":
            rendered["content"] = self.asked(message.content, message.timestamp)
        return rendered

    def asked(self, content: Any, at: datetime) -> Any:
        """Return what a user said as a model is shown it."""
        return timed(content, at.astimezone(self.time_zone))

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

    def bill(self, config: ModelConfig, answer: Answer, counted: int) -> dict[str, Any]:
        """Return what an answer took, as the journal keeps it; if nobody has counted, Sash's count stands."""
        usage, estimated = answer.usage, not answer.usage.input_tokens
        if estimated:
            output = self.counter.count_message(answer.content, answer.tool_calls)
            usage = Usage(counted, output, model=usage.model)
        model = usage.model or self.name(config) or ""
        return {
            "model": model,
            "input_tokens": usage.input_tokens,
            "cached_tokens": usage.cached_tokens,
            "output_tokens": usage.output_tokens,
            "reasoning_tokens": usage.reasoning_tokens,
            "counted_tokens": counted,
            "estimated": estimated,
            "cost_usd": self.catalog.price(usage, usage.model, self.name(config)),
        }

    async def spent_today(self, owner: str, but: Progress | None = None) -> float:
        """Return what an owner has spent today, and will for the calls under way here, `but` for one turn."""
        today = self.today()
        ended = sum(stats.cost_usd for _, stats in await self.store.turn_stats(owner, today))
        running = sum(
            progress.cost_usd + progress.reserved_usd
            for whose, progress in self.running.values()
            if whose == owner and progress is not but
        )
        return ended + running + self.beside(owner)

    def beside(self, owner: str) -> float:
        """Return what was spent today beside the turns, by this process."""
        day, usd = self._beside.get(owner, (None, 0.0))
        return usd if day == self.today() else 0.0

    def spend_beside(self, owner: str, usd: float) -> None:
        self._beside[owner] = (self.today(), self.beside(owner) + usd)

    def name(self, config: ModelConfig) -> str | None:
        return config.name or name_of(self.model)
