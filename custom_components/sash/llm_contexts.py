"""The context in which our agents use Home Assistant's LLM APIs and templates."""

from homeassistant.components.conversation import DOMAIN as CONVERSATION_DOMAIN
from homeassistant.core import Context
from homeassistant.helpers.llm import LLMContext

from .const import DOMAIN


def make_llm_context(context: Context, language: str | None, device_id: str | None = None) -> LLMContext:
    """Return the context of a turn. `device_id` is the device that was spoken to."""
    return LLMContext(
        platform=DOMAIN,
        context=context,
        language=language,
        assistant=CONVERSATION_DOMAIN,
        device_id=device_id,
    )
