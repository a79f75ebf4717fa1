"""Windows of a few turns, and a function that evicts messages from them."""

from sash.values.sessions import WindowLimits
from tests.runtime.talk import turn

TWO_TURNS = WindowLimits(max_tokens=None, max_turns=2, evict_to=1.0)
SMALL = WindowLimits(max_turns=4, evict_to=0.5)


async def fill(runtime, session, *first, turns=8):
    """Send the `first` messages, then enough others to evict them."""
    for message in first:
        await turn(runtime, session, message)
    for n in range(turns):
        await turn(runtime, session, f"small talk number {n}")
