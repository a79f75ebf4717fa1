"""The services (actions) of Sash. All of them return a response, and act for the user who calls them."""

from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any

import probatio
from homeassistant.const import ATTR_CONFIG_ENTRY_ID, ATTR_DEVICE_ID, ATTR_ENTITY_ID
from homeassistant.core import HomeAssistant, ServiceCall, ServiceResponse, SupportsResponse, callback
from homeassistant.exceptions import HomeAssistantError, ServiceValidationError
from homeassistant.helpers import config_validation as cv

from sash.errors import (
    ContinuationFinal,
    ContinuationNotFound,
    NoteNotFound,
    SashError,
    SessionBusy,
    SessionEnded,
    SessionNotFound,
    is_wrong_input,
)

from .const import DOMAIN
from .note_services import ATTR_ABOUT, ATTR_SHARED, forget, move_facts, remember
from .service_caller import ATTR_PERSON, ATTR_USER_ID
from .service_targets import (
    ATTR_AGENT,
    ATTR_AREA,
    ATTR_CONTINUATION_ID,
    ATTR_CONVERSATION_ID,
    ATTR_SESSION_ID,
)
from .session_services import (
    ATTR_LIMIT,
    ATTR_QUERY,
    explain,
    export_conversation,
    reset_conversation,
    search,
)
from .turn_services import (
    ATTR_APPROVED,
    ATTR_CALL_ID,
    ATTR_LANGUAGE,
    ATTR_TEXT,
    approve,
    ask,
    cancel,
    resume,
    undo,
)

DEFAULT_LIMIT, MAX_LIMIT = 10, 100
# The state of a record does not allow the call.
_REFUSALS = (ContinuationFinal, SessionBusy, SessionEnded)

type Handler = Callable[[ServiceCall], Coroutine[Any, Any, ServiceResponse]]

_TEXT = probatio.All(cv.string, probatio.Length(min=1))
_OF_ENTRY = {probatio.Optional(ATTR_CONFIG_ENTRY_ID): cv.string}
_FOR_USER: dict[Any, Any] = {
    **_OF_ENTRY,
    probatio.Exclusive(ATTR_PERSON, "user"): cv.entity_domain("person"),
    probatio.Exclusive(ATTR_USER_ID, "user"): cv.string,
}
_OF_PLACE: dict[Any, Any] = {
    **_FOR_USER,
    probatio.Optional(ATTR_AGENT): cv.entity_domain("conversation"),
    probatio.Optional(ATTR_CONVERSATION_ID): _TEXT,
    probatio.Optional(ATTR_DEVICE_ID): cv.string,
    probatio.Optional(ATTR_AREA): cv.string,
}
_OF_SESSION: dict[Any, Any] = {**_OF_PLACE, probatio.Optional(ATTR_SESSION_ID): cv.string}
_OF_TURN: dict[Any, Any] = {**_FOR_USER, probatio.Required(ATTR_CONTINUATION_ID): cv.string}
_SCHEMAS: dict[str, dict[Any, Any]] = {
    "ask": {
        **_OF_PLACE,
        probatio.Required(ATTR_TEXT): _TEXT,
        probatio.Optional(ATTR_LANGUAGE): cv.string,
    },
    "reset_conversation": _OF_SESSION,
    "export_conversation": _OF_SESSION,
    "search": {
        **_OF_SESSION,
        probatio.Required(ATTR_QUERY): _TEXT,
        probatio.Optional(ATTR_LIMIT, default=DEFAULT_LIMIT): probatio.All(
            probatio.Coerce(int), probatio.Range(min=1, max=MAX_LIMIT)
        ),
    },
    "cancel": _OF_TURN,
    "resume": _OF_TURN,
    "approve": {
        **_OF_TURN,
        probatio.Required(ATTR_APPROVED): cv.boolean,
        probatio.Optional(ATTR_CALL_ID): cv.string,
    },
    "undo": {**_OF_SESSION, probatio.Optional(ATTR_LANGUAGE): cv.string},
    "remember": {
        **_FOR_USER,
        probatio.Required(ATTR_TEXT): _TEXT,
        probatio.Optional(ATTR_SHARED, default=False): cv.boolean,
    },
    "forget": {**_FOR_USER, probatio.Required(ATTR_ABOUT): _TEXT},
    "explain": {**_FOR_USER, probatio.Optional(ATTR_ENTITY_ID): cv.entity_id},
    "move_facts": {**_OF_SESSION, probatio.Optional(ATTR_CONTINUATION_ID): cv.string},
}


@callback
def async_setup_services(hass: HomeAssistant) -> None:
    """Register all services. They find their config entry when they are called."""
    for handler, is_read_only in (
        (ask, False),
        (reset_conversation, False),
        (export_conversation, True),
        (search, True),
        (cancel, False),
        (resume, False),
        (approve, False),
        (undo, False),
        (remember, False),
        (forget, False),
        (explain, True),
        (move_facts, False),
    ):
        hass.services.async_register(
            DOMAIN,
            handler.__name__,
            _explain_errors(handler),
            schema=probatio.Schema(_SCHEMAS[handler.__name__]),
            supports_response=SupportsResponse.ONLY if is_read_only else SupportsResponse.OPTIONAL,
        )


def _explain_errors(handler: Handler) -> Handler:
    """Return a handler whose errors are those of Home Assistant, with a translated text."""

    @wraps(handler)
    async def handle(call: ServiceCall) -> ServiceResponse:
        try:
            return await handler(call)
        except (SessionNotFound, ContinuationNotFound, NoteNotFound) as error:
            # The record was deleted meanwhile.
            raise ServiceValidationError(
                translation_domain=DOMAIN,
                translation_key="not_found",
                translation_placeholders={"id": str(call.data.get(ATTR_CONTINUATION_ID, "-"))},
            ) from error
        except SashError as error:
            is_refused = is_wrong_input(error.code) or isinstance(error, _REFUSALS)
            kind, key = (ServiceValidationError, "refused") if is_refused else (HomeAssistantError, "failed")
            raise kind(
                translation_domain=DOMAIN,
                translation_key=key,
                translation_placeholders={"message": error.message},
            ) from error

    return handle
