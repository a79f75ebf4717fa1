"""Reads the last messages of a session."""

from sash.app.access import Caller
from sash.app.schemas import MessageShown
from sash.app.service import AgentService
from sash.ports.store import StoredMessage

_FIRST_GUESS = 1 << 10


async def last_messages(
    service: AgentService, caller: Caller, session_id: str, limit: int
) -> list[StoredMessage]:
    """Return the last `limit` messages of a session, oldest first.

    The cost does not grow with the length of the transcript.
    """
    count = await _count_messages(service, caller, session_id)
    if not count or not limit:
        return []
    first = max(0, count - limit)
    found = await service.list_messages(caller, session_id, after=first, limit=limit)
    # The service returns fewer messages at once if they are large.
    while page := await service.list_messages(caller, session_id, after=first + len(found), limit=limit):
        found += page
    return found


async def _count_messages(service: AgentService, caller: Caller, session_id: str) -> int:
    """Return the position of the last message, found by binary search: positions have no gaps."""

    async def exists(position: int) -> bool:
        return bool(await service.list_messages(caller, session_id, after=position - 1, limit=1))

    high = _FIRST_GUESS
    while await exists(high):
        high *= 2
    low = high // 2 if high > _FIRST_GUESS else 0
    while high - low > 1:
        middle = (low + high) // 2
        if await exists(middle):
            low = middle
        else:
            high = middle
    return low


def message_text(message: MessageShown) -> str:
    """Return the text of a message. Parts without text appear as their type, for example `(image_url)`."""
    if isinstance(message.content, str):
        return message.content
    parts = message.content or ()
    return " ".join(str(part["text"]) if "text" in part else f"({part.get('type')})" for part in parts)
