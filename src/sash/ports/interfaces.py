"""The interfaces of an agent's parts, by the names that integrations of Home Assistant use."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from sash.ports.model import Model
from sash.ports.store import Store

# A state manager persists conversations: every store is one.
IStateManager = Store
# An LLM client answers requests: every model is one.
ILLMClient = Model


@runtime_checkable
class IMemoryManager(Protocol):
    """A memory of conversations. `ConversationMemoryManager` is one."""

    async def add_message(
        self,
        conversation_id: str | None,
        role: str,
        content: str | Sequence[Mapping[str, Any]] | None,
        tags: Iterable[str] | None = None,
    ) -> Any:
        """Add a message to a conversation."""

    async def get_messages(
        self, conversation_id: str, tag_filter: Iterable[str] | None = None
    ) -> list[dict[str, Any]]:
        """Return the messages in the window, optionally only those with one of the tags."""

    async def reset_conversation(self, conversation_id: str) -> Any:
        """Forget a conversation."""

    def get_stats(self, conversation_id: str) -> dict[str, Any]:
        """Return the statistics of a conversation's window."""
