"""Turns that need an approval to unlock a door."""

from tests.surfaces.speaking import use

LET_IT_UNLOCK = {
    "allow_actuation": True,
    "allowlisted_services": ["lock_unlock"],
    "require_confirmation": ["lock_unlock"],
}
YES = {"action": "accept", "content": {"approved": True}}


async def locked_turn(served, headers=None) -> str:
    """Start a turn that needs an approval, and return its task id."""
    started = await use(served, "ha_agent_start_session", {"policy": LET_IT_UNLOCK}, headers=headers)
    message = {"session_id": started["structuredContent"]["session_id"], "message": "Unlock the door"}
    sent = (await use(served, "ha_agent_send_message", message, headers=headers))["structuredContent"]
    named = {"continuation_id": sent["continuation_id"]}
    await use(served, "ha_agent_await_continuation", named, headers=headers, tasks=False)
    created = await use(served, "ha_agent_await_continuation", named, headers=headers)
    assert (created["resultType"], created["taskId"]) == ("task", sent["continuation_id"])
    return created["taskId"]
