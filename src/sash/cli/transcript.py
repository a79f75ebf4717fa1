"""The end of a transcript: where it is, and what it says."""

from sash.app.access import Caller
from sash.app.schemas import MessageShown
from sash.app.service import AgentService

_FAR = 1 << 10


async def last_messages(
    desk: AgentService, caller: Caller, session_id: str, most: int
) -> tuple[MessageShown, ...]:
    """Return the last messages of a session; however long its transcript is, only these are read."""
    length = await _length(desk, caller, session_id)
    if not length or not most:
        return ()
    page = await desk.list_messages(caller, session_id, after=max(0, length - most), limit=most)
    return page.messages


async def _length(desk: AgentService, caller: Caller, session_id: str) -> int:
    """Find how many messages there are: positions have no gaps, so that halving finds the last."""

    async def reaches(position: int) -> bool:
        return bool((await desk.list_messages(caller, session_id, after=position - 1, limit=1)).messages)

    above = _FAR
    while await reaches(above):
        above *= 2
    known = above // 2 if above > _FAR else 0
    while above - known > 1:
        middle = (known + above) // 2
        if await reaches(middle):
            known = middle
        else:
            above = middle
    return known


def words(message: MessageShown) -> str:
    """Return the words of a message; what else it has is named."""
    if isinstance(message.content, str):
        return message.content
    parts = message.content or ()
    return " ".join(str(part["text"]) if "text" in part else f"({part.get('type')})" for part in parts)
