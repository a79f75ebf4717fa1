"""Sash: conversations with an agent that remember exactly, cost little, and never lose or repeat anything."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from sash.errors import SashError

if TYPE_CHECKING:
    from sash.demo.demo_home import demo_home
    from sash.engine.runtime import Runtime
    from sash.engine.turn.continuation_result import ContinuationResult
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
    from sash.models.openai.model import OpenAIModel
    from sash.ports.embedder import Embedder
    from sash.ports.home import Home
    from sash.ports.intents import Intents, LocalCallResult, Utterance
    from sash.ports.interfaces import ILLMClient, IMemoryManager, IStateManager
    from sash.ports.model import (
        Answer,
        Delta,
        Model,
        ModelRequest,
        ReasoningDelta,
        Stop,
        TextDelta,
        ToolCallDelta,
        Usage,
    )
    from sash.ports.store import Store
    from sash.ports.tools import ActionOutcome, ServiceUse, ToolContext, ToolSpec
    from sash.stores.files.store import FilesStore
    from sash.stores.memory import MemoryStore
    from sash.stores.sqlite.store import SqliteStore
    from sash.values.action_explanation import ActionExplanation
    from sash.values.clock import Clock, SystemClock
    from sash.values.config import RECOMMENDED_SLIDING_WINDOW_MAX_TOKENS, AgentConfig
    from sash.values.continuations import (
        Action,
        ArtifactRef,
        Continuation,
        ContinuationRequest,
        ContinuationResponse,
        TurnCaller,
    )
    from sash.values.events import Event, FinalEvent, PartialEvent, ProgressEvent, StepEvent, SweptEvent
    from sash.values.messages import AgentState, ConversationWindow, MessageEntry
    from sash.values.owner_notes import OwnerNotes
    from sash.values.requests import Ask, SendMessage, StartSession
    from sash.values.sessions import (
        Budgets,
        Defaults,
        Fact,
        ModelConfig,
        OperatorLimits,
        Pin,
        Retention,
        Session,
        SessionPolicy,
        WindowLimits,
    )
    from sash.values.stats import Stats
    from sash.values.steps import (
        Amended,
        AnswerSentBack,
        ApprovalGiven,
        ApprovalRequested,
        Cancelled,
        Expired,
        Failed,
        Finished,
        HomeChanged,
        Interrupted,
        Plan,
        Recalled,
        Recorded,
        Step,
        StepBody,
        ToolCall,
        ToolResult,
        UnknownStep,
        WaitingTurnFired,
    )

__version__ = "0.1.0"

# Names are imported on first use: `sash --help` must not wait for modules that it does not need.
_MODULES = {
    "Action": "values.continuations",
    "ActionExplanation": "values.action_explanation",
    "ActionOutcome": "ports.tools",
    "Added": "memory.manager",
    "AgentConfig": "values.config",
    "AgentState": "values.messages",
    "Amended": "values.steps",
    "Answer": "ports.model",
    "AnswerSentBack": "values.steps",
    "ApprovalGiven": "values.steps",
    "ApprovalRequested": "values.steps",
    "ArtifactRef": "values.continuations",
    "Ask": "values.requests",
    "Budgets": "values.sessions",
    "Cancelled": "values.steps",
    "Catalog": "models.catalog",
    "Clock": "values.clock",
    "Continuation": "values.continuations",
    "ContinuationRequest": "values.continuations",
    "ContinuationResponse": "values.continuations",
    "ContinuationResult": "engine.worker",
    "ConversationManager": "memory.conversation",
    "ConversationMemoryManager": "memory.manager",
    "ConversationWindow": "values.messages",
    "Defaults": "values.sessions",
    "Delta": "ports.model",
    "Embedder": "ports.embedder",
    "Event": "values.events",
    "Eviction": "memory.window",
    "Expired": "values.steps",
    "Fact": "values.sessions",
    "Failed": "values.steps",
    "FallbackModel": "models.fallback",
    "FilesStore": "stores.files.store",
    "FinalEvent": "values.events",
    "Finished": "values.steps",
    "Home": "ports.home",
    "HomeChanged": "values.steps",
    "ILLMClient": "ports.interfaces",
    "IMemoryManager": "ports.interfaces",
    "IStateManager": "ports.interfaces",
    "Intents": "ports.intents",
    "Interrupted": "values.steps",
    "LocalCallResult": "ports.intents",
    "MemoryStore": "stores.memory",
    "MessageEntry": "values.messages",
    "Model": "ports.model",
    "ModelConfig": "values.sessions",
    "ModelFacts": "models.catalog",
    "ModelRequest": "ports.model",
    "OfflineModel": "models.offline",
    "OpenAIEmbedder": "models.openai.embedder",
    "OpenAIModel": "models.openai.model",
    "OperatorLimits": "values.sessions",
    "OwnerNotes": "values.owner_notes",
    "PartialEvent": "values.events",
    "Pin": "values.sessions",
    "Plan": "values.steps",
    "ProgressEvent": "values.events",
    "RECOMMENDED_SLIDING_WINDOW_MAX_TOKENS": "values.config",
    "ReasoningDelta": "ports.model",
    "Recalled": "values.steps",
    "Recorded": "values.steps",
    "RemoteHome": "home.remote",
    "Retention": "values.sessions",
    "Runtime": "engine.runtime",
    "SendMessage": "values.requests",
    "ServiceUse": "ports.tools",
    "Session": "values.sessions",
    "SessionPolicy": "values.sessions",
    "SqliteStore": "stores.sqlite.store",
    "StartSession": "values.requests",
    "Stats": "values.stats",
    "Step": "values.steps",
    "StepBody": "values.steps",
    "StepEvent": "values.events",
    "Stop": "ports.model",
    "Store": "ports.store",
    "SweptEvent": "values.events",
    "SystemClock": "values.clock",
    "TextDelta": "ports.model",
    "TokenCounter": "memory.tokens",
    "ToolCall": "values.steps",
    "ToolCallDelta": "ports.model",
    "ToolContext": "ports.tools",
    "ToolResult": "values.steps",
    "ToolSpec": "ports.tools",
    "TurnCaller": "values.continuations",
    "UnknownStep": "values.steps",
    "Usage": "ports.model",
    "Utterance": "ports.intents",
    "Vocabulary": "intents.vocabulary",
    "WaitingTurnFired": "values.steps",
    "WindowLimits": "values.sessions",
    "count_text": "memory.tokens",
    "demo_home": "demo.demo_home",
}

__all__ = [
    "RECOMMENDED_SLIDING_WINDOW_MAX_TOKENS",
    "Action",
    "ActionExplanation",
    "ActionOutcome",
    "Added",
    "AgentConfig",
    "AgentState",
    "Amended",
    "Answer",
    "AnswerSentBack",
    "ApprovalGiven",
    "ApprovalRequested",
    "ArtifactRef",
    "Ask",
    "Budgets",
    "Cancelled",
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
    "Delta",
    "Embedder",
    "Event",
    "Eviction",
    "Expired",
    "Fact",
    "Failed",
    "FallbackModel",
    "FilesStore",
    "FinalEvent",
    "Finished",
    "Home",
    "HomeChanged",
    "ILLMClient",
    "IMemoryManager",
    "IStateManager",
    "Intents",
    "Interrupted",
    "LocalCallResult",
    "MemoryStore",
    "MessageEntry",
    "Model",
    "ModelConfig",
    "ModelFacts",
    "ModelRequest",
    "OfflineModel",
    "OpenAIEmbedder",
    "OpenAIModel",
    "OperatorLimits",
    "OwnerNotes",
    "PartialEvent",
    "Pin",
    "Plan",
    "ProgressEvent",
    "ReasoningDelta",
    "Recalled",
    "Recorded",
    "RemoteHome",
    "Retention",
    "Runtime",
    "SashError",
    "SendMessage",
    "ServiceUse",
    "Session",
    "SessionPolicy",
    "SqliteStore",
    "StartSession",
    "Stats",
    "Step",
    "StepBody",
    "StepEvent",
    "Stop",
    "Store",
    "SweptEvent",
    "SystemClock",
    "TextDelta",
    "TokenCounter",
    "ToolCall",
    "ToolCallDelta",
    "ToolContext",
    "ToolResult",
    "ToolSpec",
    "TurnCaller",
    "UnknownStep",
    "Usage",
    "Utterance",
    "Vocabulary",
    "WaitingTurnFired",
    "WindowLimits",
    "__version__",
    "count_text",
    "demo_home",
]


def __getattr__(name: str) -> Any:
    """Import a public name on first use."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        module = import_module(f"{__name__}.{_MODULES[name]}")
    except ModuleNotFoundError as error:
        extra = "openai" if name.startswith("OpenAI") else "home"
        raise ImportError(f"{name} needs more packages: pip install 'sash[{extra}]' ({error})") from error
    value = globals()[name] = getattr(module, name)
    return value
