"""Sash: conversations with an agent that remember exactly, cost little, and never lose or repeat anything."""

from sash.config import AgentConfig
from sash.conversation import ConversationManager
from sash.errors import SashError
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
