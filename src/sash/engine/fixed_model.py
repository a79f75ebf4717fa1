"""What a client may choose if the model is fixed (`enforce_fixed_model`)."""

from dataclasses import replace

from sash.errors import ModelFixed
from sash.values.sessions import ModelConfig

# Options that change how the model answers. Others may choose another model, another price, or a tool of the
# provider (`models`, `service_tier`, `web_search_options`), so this list names all that are allowed.
ALLOWED_OPTIONS = frozenset(
    {
        "frequency_penalty",
        "logprobs",
        "min_p",
        "presence_penalty",
        "reasoning",
        "reasoning_effort",
        "repetition_penalty",
        "response_format",
        "seed",
        "stop",
        "text",
        "top_k",
        "top_logprobs",
        "top_p",
        "verbosity",
    }
)


def check_fixed_model(config: ModelConfig, fixed_name: str | None) -> None:
    """Raise `ModelFixed` if a configuration names another model, or has options that are not allowed."""
    if config.name not in (None, fixed_name):
        raise ModelFixed(
            "the model is fixed (enforce_fixed_model): leave its name out, or start another session"
        )
    if refused := sorted(config.options.keys() - ALLOWED_OPTIONS):
        raise ModelFixed(
            f"the model is fixed (enforce_fixed_model): leave out the options {', '.join(refused)}"
        )


def keep_fixed_model(config: ModelConfig) -> ModelConfig:
    """Return the configuration of a turn without its choice of a model and without other options."""
    options = {name: value for name, value in config.options.items() if name in ALLOWED_OPTIONS}
    return replace(config, name=None, options=options)
