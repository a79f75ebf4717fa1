"""Sash: conversations with an agent that remember exactly, cost little, and never lose or repeat anything."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from sash.errors import SashError

if TYPE_CHECKING:
    from sash.demo.demo_home import demo_home
    from sash.engine.runtime import Runtime
    from sash.engine.worker import ContinuationResult
    from sash.home.remote import RemoteHome
    from sash.intents.vocabulary import Vocabulary
    from sash.memory.conversation import ConversationManager
    from sash.memory.manager import Added, ConversationMemoryManager
    from sash.memory.tokens import TokenCounter, count_text
    from sash.memory.window import Eviction
    from sash.models.catalog import Catalog, ModelFacts
    from sash.models.fallback import FallbackModel
    from sash.models.offline import OfflineModel
    from sash.models.openai.embedder import OpenAIEmbedder
    from sash.models.openai.endpoint import Endpoint
    from sash.models.openai.model import openai_model
    from sash.ports.embedder import Embedder
    from sash.ports.home import Home
    from sash.ports.intents import Intents
    from sash.ports.model import Model, ModelRequest
    from sash.ports.store import Store
    from sash.ports.tools import ToolContext, ToolSpec
    from sash.stores.files.store import FilesStore
    from sash.stores.memory import MemoryStore
    from sash.stores.sqlite.store import SqliteStore
    from sash.values.clock import Clock, SystemClock
    from sash.values.config import AgentConfig
    from sash.values.continuations import (
        Action,
        ArtifactRef,
        Continuation,
        ContinuationRequest,
        ContinuationResponse,
    )
    from sash.values.events import Event
    from sash.values.messages import AgentState, ConversationWindow, MessageEntry
    from sash.values.sessions import (
        Budgets,
        Defaults,
        Fact,
        ModelConfig,
        Pin,
        Session,
        SessionPolicy,
        WindowLimits,
    )
    from sash.values.stats import Stats
    from sash.values.steps import Step

__version__ = "0.1.0"

# Names are imported on first use: `sash --help` must not wait for modules that it does not need.
_MODULES = {
    "Action": "values.continuations",
    "Added": "memory.manager",
    "AgentConfig": "values.config",
    "AgentState": "values.messages",
    "ArtifactRef": "values.continuations",
    "Budgets": "values.sessions",
    "Catalog": "models.catalog",
    "Clock": "values.clock",
    "Continuation": "values.continuations",
    "ContinuationRequest": "values.continuations",
    "ContinuationResponse": "values.continuations",
    "ConversationManager": "memory.conversation",
    "ConversationMemoryManager": "memory.manager",
    "ConversationWindow": "values.messages",
    "Defaults": "values.sessions",
    "Embedder": "ports.embedder",
    "Endpoint": "models.openai.endpoint",
    "Event": "values.events",
    "Eviction": "memory.window",
    "Fact": "values.sessions",
    "FallbackModel": "models.fallback",
    "FilesStore": "stores.files.store",
    "Home": "ports.home",
    "Intents": "ports.intents",
    "MemoryStore": "stores.memory",
    "MessageEntry": "values.messages",
    "Model": "ports.model",
    "ModelConfig": "values.sessions",
    "ModelFacts": "models.catalog",
    "ModelRequest": "ports.model",
    "OfflineModel": "models.offline",
    "OpenAIEmbedder": "models.openai.embedder",
    "Pin": "values.sessions",
    "RemoteHome": "home.remote",
    "ContinuationResult": "engine.worker",
    "Runtime": "engine.runtime",
    "Session": "values.sessions",
    "SessionPolicy": "values.sessions",
    "SqliteStore": "stores.sqlite.store",
    "Stats": "values.stats",
    "Step": "values.steps",
    "Store": "ports.store",
    "SystemClock": "values.clock",
    "TokenCounter": "memory.tokens",
    "ToolContext": "ports.tools",
    "ToolSpec": "ports.tools",
    "Vocabulary": "intents.vocabulary",
    "WindowLimits": "values.sessions",
    "count_text": "memory.tokens",
    "demo_home": "demo.demo_home",
    "openai_model": "models.openai.model",
}

__all__ = [
    "Action",
    "Added",
    "AgentConfig",
    "AgentState",
    "ArtifactRef",
    "Budgets",
    "Catalog",
    "Clock",
    "Continuation",
    "ContinuationRequest",
    "ContinuationResponse",
    "ContinuationResult",
    "ConversationManager",
    "ConversationMemoryManager",
    "ConversationWindow",
    "Defaults",
    "Embedder",
    "Endpoint",
    "Event",
    "Eviction",
    "Fact",
    "FallbackModel",
    "FilesStore",
    "Home",
    "Intents",
    "MemoryStore",
    "MessageEntry",
    "Model",
    "ModelConfig",
    "ModelFacts",
    "ModelRequest",
    "OfflineModel",
    "OpenAIEmbedder",
    "Pin",
    "RemoteHome",
    "Runtime",
    "SashError",
    "Session",
    "SessionPolicy",
    "SqliteStore",
    "Stats",
    "Step",
    "Store",
    "SystemClock",
    "TokenCounter",
    "ToolContext",
    "ToolSpec",
    "Vocabulary",
    "WindowLimits",
    "__version__",
    "count_text",
    "demo_home",
    "openai_model",
]


def __getattr__(name: str) -> Any:
    """Import a public name on first use."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    return value
