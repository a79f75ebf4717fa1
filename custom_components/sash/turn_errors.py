"""The failures of turns, as sentences for the user. The message of an error itself is for the log."""

from homeassistant.core import HomeAssistant
from homeassistant.helpers.translation import async_get_translations

from sash.engine.turn.continuation_result import ContinuationResult
from sash.errors import (
    ContentFiltered,
    ContextTooLong,
    MessageTooLarge,
    ModelError,
    ModelKeyRefused,
    ModelQuotaReached,
    ModelUnknown,
    ModelUnreachable,
    SessionBusy,
    StoreUnavailable,
    TooManyTurns,
)

from .const import DOMAIN
from .turn_signal import find_error_code

# Errors whose cause and remedy can be told without the message of the error.
PLAIN_ERRORS = frozenset(
    kind.code
    for kind in (
        ContentFiltered,
        ContextTooLong,
        MessageTooLarge,
        ModelKeyRefused,
        ModelQuotaReached,
        ModelUnknown,
        ModelUnreachable,
        SessionBusy,
        StoreUnavailable,
        TooManyTurns,
    )
)
# The user finds the reason of all others in the log.
INTERRUPTED = "interrupted"
_OTHERS = {ModelError.code: ModelError.code, "cancelled": "turn_cancelled", INTERRUPTED: "turn_interrupted"}
_UNKNOWN = "turn_error"


async def describe_failure(hass: HomeAssistant, result: ContinuationResult, language: str) -> str:
    """Return a sentence about a turn without an answer: what is wrong, and what the user can do."""
    return await describe_error(hass, find_error_code(result) or result.status, language)


async def describe_error(hass: HomeAssistant, code: str, language: str) -> str:
    """Return a sentence about an error of Sash."""
    key = code if code in PLAIN_ERRORS else _OTHERS.get(code, _UNKNOWN)
    return await write_exception(hass, key, language)


async def write_exception(hass: HomeAssistant, key: str, language: str, **placeholders: str) -> str:
    """Return the text of a translated exception, in a language of the integration or else in English."""
    tag = language.lower().partition("-")[0]
    texts = await async_get_translations(hass, tag, "exceptions", [DOMAIN])
    return texts[f"component.{DOMAIN}.exceptions.{key}.message"].format(**placeholders)
