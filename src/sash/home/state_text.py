"""A state in words that a person reads: "closed", "21.5 °C"."""

from sash.home.index import HomeIndex
from sash.ports.home import NO_STATE, UNKNOWN, Entity
from sash.values.state_words import choose_state_words

MAX_DECIMALS = 2


def write_state(index: HomeIndex, entity: Entity, language: str | None = None) -> str:
    """Return the present state of an entity in a language, with its unit; "unknown" if it has none.

    States on and off are named by the device class of the entity. A language without words shows English
    ones. A number has at most two decimals.
    """
    words = choose_state_words(language or index.language)
    state = index.states.get(entity.id)
    if state is None or state.state in NO_STATE:
        return words.name_state(UNKNOWN if state is None else state.state)
    named = words.name_state(state.state, index.get_device_class(entity.id))
    if named != state.state:
        return named
    return f"{_shorten(named)} {state.unit}" if state.unit else _shorten(named)


def _shorten(state: str) -> str:
    """Return a number with at most two decimals, and another text with spaces in place of underscores."""
    whole, _, digits = state.partition(".")
    if whole.removeprefix("-").isdecimal() and digits.isdecimal():
        return (
            f"{float(state):.{MAX_DECIMALS}f}".rstrip("0").rstrip(".")
            if len(digits) > MAX_DECIMALS
            else state
        )
    return state.replace("_", " ")
