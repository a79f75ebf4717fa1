"""Sash: conversations with an agent that remember exactly, cost little, and never lose or repeat anything."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from sash.errors import SashError

if TYPE_CHECKING:
    from sash.config import AgentConfig
    from sash.conversation import ConversationManager
    from sash.memory import Added, ConversationMemoryManager
    from sash.runtime import Runtime
    from sash.sessions import Session
    from sash.state import AgentState, ConversationWindow, MessageEntry
    from sash.steps import Continuation
    from sash.window import Eviction

__version__ = "0.1.0"

__all__ = [
    "Added",
    "AgentConfig",
    "AgentState",
    "Continuation",
    "ConversationManager",
    "ConversationMemoryManager",
    "ConversationWindow",
    "Eviction",
    "MessageEntry",
    "Runtime",
    "SashError",
    "Session",
    "__version__",
]

# Imported when they are asked for, so that `sash --help` does not wait for what it has no use for.
_MODULES = {
    "Added": "memory",
    "AgentConfig": "config",
    "AgentState": "state",
    "Continuation": "steps",
    "ConversationManager": "conversation",
    "ConversationMemoryManager": "memory",
    "ConversationWindow": "state",
    "Eviction": "window",
    "MessageEntry": "state",
    "Runtime": "runtime",
    "Session": "sessions",
}


def __getattr__(name: str) -> Any:
    """Import a public name."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    return value
