"""Sash: conversations with an agent that remember exactly, cost little, and never lose or repeat anything."""

from sash.config import AgentConfig
from sash.conversation import ConversationManager
from sash.errors import SashError
from sash.memory import ConversationMemoryManager
from sash.state import AgentState, ConversationWindow, MessageEntry

__version__ = "0.1.0"

__all__ = [
    "AgentConfig",
    "AgentState",
    "ConversationManager",
    "ConversationMemoryManager",
    "ConversationWindow",
    "MessageEntry",
    "SashError",
    "__version__",
]
