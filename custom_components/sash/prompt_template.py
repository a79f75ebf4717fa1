"""Renders the prompt of an agent, which is a template of Home Assistant."""

from homeassistant.helpers.llm import LLMContext
from homeassistant.helpers.template import Template


def render_prompt(template: Template, user_name: str | None, llm_context: LLMContext) -> str:
    """Return the text of a prompt. It has the variables of Home Assistant's own agents.

    Raise `TemplateError` if the template is wrong.
    """
    variables = {
        "ha_name": template.hass.config.location_name,
        "user_name": user_name,
        "llm_context": llm_context,
    }
    return str(template.async_render(variables, parse_result=False)).strip()
