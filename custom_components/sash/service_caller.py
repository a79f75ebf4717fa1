"""Finds the user that a service call acts for. The call reaches the data of that user and of the house."""

from dataclasses import dataclass
from typing import Any

from homeassistant.const import ATTR_ENTITY_ID
from homeassistant.core import HomeAssistant, ServiceCall, callback
from homeassistant.exceptions import ServiceValidationError

from .const import DOMAIN
from .session_scope import HOUSE, find_owner

ATTR_PERSON = "person"
ATTR_USER_ID = "user_id"


@dataclass(frozen=True, slots=True)
class ServiceCaller:
    """The user that a call acts for, or the house if `user_id` is None."""

    user_id: str | None = None
    user_name: str | None = None
    is_admin: bool = False

    @property
    def owner(self) -> str:
        """The owner of what the call creates."""
        return find_owner(self.user_id)

    @property
    def owners(self) -> tuple[str, ...]:
        """The owners that the call reaches: the user, then the house, which all users share."""
        return tuple(dict.fromkeys((self.owner, HOUSE)))


async def find_caller(call: ServiceCall) -> ServiceCaller:
    """Return the user that a call acts for. An administrator may name another user.

    A call without a user comes from an automation, and acts for the house.
    """
    caller, named_id = await find_signed_in(call), find_named_id(call)
    if named_id in (None, caller.user_id):
        return caller
    if not caller.is_admin:
        # This comes before the search for the user: only administrators may learn which users exist.
        raise ServiceValidationError(translation_domain=DOMAIN, translation_key="not_for_others")
    return await find_user(call.hass, str(named_id))


async def find_signed_in(call: ServiceCall) -> ServiceCaller:
    """Return the user who made a call, also if the call names another user."""
    user_id = call.context.user_id
    return ServiceCaller() if user_id is None else await find_user(call.hass, user_id)


async def find_user(hass: HomeAssistant, user_id: str) -> ServiceCaller:
    """Return a user. Home Assistant's own processes are users, too: they are the house."""
    user = await hass.auth.async_get_user(user_id)
    if user is None:
        raise ServiceValidationError(translation_domain=DOMAIN, translation_key="user_unknown")
    if user.system_generated:
        return ServiceCaller()
    return ServiceCaller(user.id, user.name, user.is_admin)


@callback
def find_named_id(call: ServiceCall) -> str | None:
    """Return the id of the user that a call names, itself or by a person, or None."""
    if (entity_id := call.data.get(ATTR_PERSON)) is None:
        named_id: str | None = call.data.get(ATTR_USER_ID)
        return named_id
    state = call.hass.states.get(entity_id)
    user_id: Any = None if state is None else state.attributes.get(ATTR_USER_ID)
    if not user_id:
        raise ServiceValidationError(
            translation_domain=DOMAIN,
            translation_key="person_without_user",
            translation_placeholders={ATTR_ENTITY_ID: entity_id},
        )
    return str(user_id)
