"""What is known about models by their names: prices and context windows, offline."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from sash.ports.model import Usage
from sash.values.validation import check_amount, check_limit

# The list of prices does not have these.
_CONTEXT_WINDOWS = (
    ("gemini-3", 1_048_576),
    ("gemini-2", 1_048_576),
    ("gemini-1.5-pro", 2_097_152),
    ("gpt-4.1", 1_047_576),
)
OFFLINE = "offline"
_VARIANTS = frozenset({"free", "nitro", "floor", "online", "thinking", "extended", "beta", "exacto"})
_MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """What one knows about a model: prices in US dollars for a million tokens, and how many it can read.

    Without a price for cached input it costs what all input costs. None is not known.
    """

    input_usd: float | None = None
    output_usd: float | None = None
    cached_usd: float | None = None
    context_window: int | None = None

    def __post_init__(self) -> None:
        for name in ("input_usd", "output_usd", "cached_usd"):
            check_amount(name, getattr(self, name))
        if self.context_window is not None:
            check_limit("context_window", self.context_window)

    def price(self, usage: Usage) -> float | None:
        if self.input_usd is None or self.output_usd is None:
            return None
        cached_usd = self.input_usd if self.cached_usd is None else self.cached_usd
        fresh = usage.input_tokens - usage.cached_tokens
        return (
            fresh * self.input_usd + usage.cached_tokens * cached_usd + usage.output_tokens * self.output_usd
        ) / _MILLION


class Catalog:
    """Prices and limits by model: first those that were given, then those that `genai-prices` lists."""

    def __init__(self, known: Mapping[str, ModelFacts] | None = None) -> None:
        self._known = dict(known or {})

    def load(self) -> None:
        """Read the list of prices, which takes a moment the first time."""
        _listed("gpt-4o")

    def price(self, usage: Usage, *models: str | None) -> float | None:
        """Return what a call costs in US dollars, or None if nobody knows.

        The first model that is known counts, and what one knows oneself before what is listed: a provider may
        answer under a longer name than it was asked by.
        """
        names = [model for model in models if model]
        if any(name == OFFLINE or name.endswith(":free") for name in names[:1]):
            return 0.0
        for name in names:
            if (facts := self._known.get(name)) and (cost := facts.price(usage)) is not None:
                return cost
        for name in names:
            if (cost := _listed_price(name, usage)) is not None:
                return cost
        return None

    def context_window(self, model: str | None) -> int | None:
        """Return how many tokens a model can read, or None if nobody knows."""
        if not model:
            return None
        if (facts := self._known.get(model)) and facts.context_window:
            return facts.context_window
        listed = _listed(model)
        if listed is not None and listed.model.context_window:
            return int(listed.model.context_window)
        name = _plain(model)
        return next((size for prefix, size in _CONTEXT_WINDOWS if name.startswith(prefix)), None)


def _plain(model: str) -> str:
    """A router puts the provider before the name and a variant behind it; a size makes another model."""
    name = model.rpartition("/")[2]
    plain, _, variant = name.partition(":")
    return plain if variant in _VARIANTS else name


@lru_cache(maxsize=64)
def _listed(model: str) -> Any:
    """Return what `genai-prices` says of a model and its provider; without that package nothing is known."""
    try:
        from genai_prices import Usage as Counted
        from genai_prices import calc_price
    except ImportError:
        return None
    for name in (model, _plain(model)):
        with suppress(LookupError):
            return calc_price(Counted(input_tokens=1), model_ref=name)
    return None


def _listed_price(model: str, usage: Usage) -> float | None:
    if (listed := _listed(model)) is None:
        return None
    from genai_prices import Usage as Counted
    from genai_prices import calc_price

    counted = Counted(
        input_tokens=usage.input_tokens,
        cache_read_tokens=usage.cached_tokens,
        output_tokens=usage.output_tokens,
    )
    with suppress(LookupError, ValueError):
        found = calc_price(counted, model_ref=listed.model.id, provider_id=listed.provider.id)
        return float(found.total_price)
    return None
