"""The user who sent a message, and how Sash knows the user."""

from typing import Literal

from sash.values.sessions import Label
from sash.values.validated import validated


@validated()
class TurnCaller:
    """The user who sent a message, and the device that the user spoke to, such as a satellite.

    `certainty` says how Sash knows the user: the user signed in, a person named the user later ("that was
    Anna"), or Sash does not know the user.
    """

    user_id: Label | None = None
    user_name: Label | None = None
    device_id: Label | None = None
    certainty: Literal["signed_in", "named", "unknown"] = "unknown"


def is_same_speaker(asked: TurnCaller | None, speaker: TurnCaller | None) -> bool:
    """Return True if a speaker is the user, and speaks to the device, of an earlier turn."""
    asked, speaker = asked or TurnCaller(), speaker or TurnCaller()
    # A user who was named later did not sign in on the device.
    is_user = asked.certainty == "named" or asked.user_id == speaker.user_id
    return is_user and asked.device_id == speaker.device_id
