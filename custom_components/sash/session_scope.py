"""Finds the session of a turn, by the scope of its agent and the origin of the message."""

from dataclasses import dataclass

from sash.values.sessions import Session

from .agent_options import SessionScope
from .const import SCOPE_AREA, SCOPE_CONVERSATION, SCOPE_DEVICE, SCOPE_HOUSE, SCOPE_STATELESS, SCOPE_USER

# The owner of turns without a signed-in user, such as those of a satellite. Every owner knows its facts.
HOUSE = "house"
# The key in the context of a session whose name does not begin with the id of its agent.
AGENT_ID = "agent_id"


@dataclass(frozen=True, slots=True)
class Speaker:
    """The origin of a message: a conversation of Home Assistant, and the user and the place, if known."""

    conversation_id: str
    user_id: str | None = None
    user_name: str | None = None
    device_id: str | None = None
    satellite_id: str | None = None
    area_id: str | None = None
    area_name: str | None = None


@dataclass(frozen=True, slots=True)
class SessionPlace:
    """The owner and the name of a session. Without a name the session lives for one turn."""

    owner: str
    name: str | None


def find_owner(user_id: str | None) -> str:
    """Return the owner of what a user says; without a user it is the house."""
    return HOUSE if user_id is None else f"user:{user_id}"


def find_user_id(owner: str) -> str | None:
    """Return the user that an owner stands for, or None for the house."""
    prefix, _, user_id = owner.partition(":")
    return user_id if prefix == "user" else None


def find_agent_id(session: Session) -> str | None:
    """Return the id of the agent that a session belongs to, or None."""
    agent_id = session.context.get(AGENT_ID)
    if isinstance(agent_id, str):
        return agent_id
    return None if session.name is None else session.name.partition("/")[0]


def find_session_place(agent_id: str, scope: SessionScope, speaker: Speaker) -> SessionPlace:
    """Return the place of a turn.

    A scope whose key is unknown falls back to the next narrower one: the user or the area to the device, the
    device to the user, and all of them to the conversation. The session of an area or of the house belongs to
    the house, also if a signed-in user speaks there.
    """
    owner = find_owner(speaker.user_id)
    if scope == SCOPE_STATELESS:
        return SessionPlace(owner, None)
    if scope == SCOPE_HOUSE:
        return SessionPlace(HOUSE, f"{agent_id}/{SCOPE_HOUSE}")
    if scope == SCOPE_AREA and speaker.area_id is not None:
        return SessionPlace(HOUSE, f"{agent_id}/{SCOPE_AREA}/{speaker.area_id}")
    keys = {
        SCOPE_USER: speaker.user_id,
        SCOPE_DEVICE: speaker.device_id,
        SCOPE_CONVERSATION: speaker.conversation_id,
    }
    order = {
        SCOPE_USER: (SCOPE_USER, SCOPE_DEVICE, SCOPE_CONVERSATION),
        SCOPE_AREA: (SCOPE_DEVICE, SCOPE_USER, SCOPE_CONVERSATION),
        SCOPE_DEVICE: (SCOPE_DEVICE, SCOPE_USER, SCOPE_CONVERSATION),
        SCOPE_CONVERSATION: (SCOPE_CONVERSATION,),
    }[scope]
    kind = next(kind for kind in order if keys[kind] is not None)
    return SessionPlace(owner, f"{agent_id}/{kind}/{keys[kind]}")
