"""Home Assistant's contexts for the calls of a turn."""

from homeassistant.core import Context, HomeAssistant

from sash.values.continuations import TurnCaller
from sash.values.ids import is_ulid


async def make_context(hass: HomeAssistant, caller: TurnCaller | None, turn_id: str | None) -> Context:
    """Return a context that names the user who asked, and has the turn as its parent."""
    user_id = None if caller is None else caller.user_id
    user = None if user_id is None else await hass.auth.async_get_user(user_id)
    # The recorder stores a parent only if it is a ULID.
    return Context(user_id=None if user is None else user.id, parent_id=turn_id if is_ulid(turn_id) else None)
