"""Finds the user, the device and the area of a message."""

from homeassistant.auth.models import User
from homeassistant.components.conversation import ConversationInput
from homeassistant.core import HomeAssistant, callback
from homeassistant.helpers import area_registry as ar
from homeassistant.helpers import device_registry as dr
from homeassistant.helpers import entity_registry as er

from sash.values.continuations import TurnCaller

from .announcer import SATELLITE_DOMAIN
from .session_scope import Speaker


async def find_speaker(hass: HomeAssistant, user_input: ConversationInput, conversation_id: str) -> Speaker:
    """Return the user, the device and the area of a message, as far as Home Assistant knows them."""
    person = await find_person(hass, user_input.context.user_id)
    return locate_speaker(
        hass,
        conversation_id,
        user_id=None if person is None else person.id,
        user_name=None if person is None else person.name,
        device_id=user_input.device_id,
        satellite_id=user_input.satellite_id,
    )


async def find_person(hass: HomeAssistant, user_id: str | None) -> User | None:
    """Return a user who is a person, or None.

    Home Assistant's own processes, such as the Supervisor, are users too. They are not people of the house.
    """
    user = None if user_id is None else await hass.auth.async_get_user(user_id)
    return None if user is None or user.system_generated else user


@callback
def locate_speaker(
    hass: HomeAssistant,
    conversation_id: str,
    *,
    user_id: str | None = None,
    user_name: str | None = None,
    device_id: str | None,
    satellite_id: str | None = None,
) -> Speaker:
    """Return the origin of a message: the device is that of the satellite if the message names none.

    The area is that of the satellite, or else that of the device.
    """
    satellite = None if satellite_id is None else er.async_get(hass).async_get(satellite_id)
    area_id = None
    if satellite is not None:
        device_id, area_id = device_id or satellite.device_id, satellite.area_id
    device = None if device_id is None else dr.async_get(hass).async_get(device_id)
    if area_id is None and device is not None:
        area_id = dr.async_get_effective_area_id(hass, device)
    area = None if area_id is None else ar.async_get(hass).async_get_area(area_id)
    return Speaker(
        conversation_id,
        user_id=user_id,
        user_name=user_name,
        device_id=device_id,
        satellite_id=satellite_id,
        area_id=None if area is None else area.id,
        area_name=None if area is None else area.name,
    )


@callback
def recall_speaker(hass: HomeAssistant, caller: TurnCaller | None) -> Speaker:
    """Return who sent the message of an earlier turn, as far as its result has to reach them."""
    caller = caller or TurnCaller()
    return Speaker(
        "",
        user_id=caller.user_id,
        user_name=caller.user_name,
        device_id=caller.device_id,
        satellite_id=find_satellite(hass, caller.device_id),
    )


@callback
def find_satellite(hass: HomeAssistant, device_id: str | None) -> str | None:
    """Return the entity of the satellite that a device is, or None for another device, such as a phone."""
    entries = er.async_entries_for_device(er.async_get(hass), device_id or "")
    return next((entry.entity_id for entry in entries if entry.domain == SATELLITE_DOMAIN), None)
