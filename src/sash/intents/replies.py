"""Answers in the words of a language, by the templates of home-assistant-intents."""

import logging
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from jinja2 import Template, TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from sash.intents.grammar import Grammar, Meaning

# What is said where a language has nothing to say.
DONE = "OK."
_DECIMALS = 2
_NONE: Mapping[str, str] = {}

# A template that had no word for something.
_nothing = re.compile(r"\bNone\b")
_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, eq=False)
class SpokenState:
    """A state as the templates speak of it. It equals a text that is its state."""

    entity_id: str
    name: str
    state: str
    attributes: Mapping[str, Any] = field(default_factory=dict)
    word: str = ""

    def __eq__(self, other: object) -> bool:
        return self.state == other if isinstance(other, str) else self is other

    def __hash__(self) -> int:
        return hash(self.entity_id)

    @property
    def domain(self) -> str:
        return self.entity_id.partition(".")[0]

    @property
    def hass_state(self) -> str:
        return self.state

    @property
    def state_with_unit(self) -> str:
        unit = self.attributes.get("unit_of_measurement")
        said = self.word or _rounded(self.state.replace("_", " "))
        return f"{said} {unit}" if unit else said


class Replies:
    """Fills in the templates of one language."""

    def __init__(self, grammar: Grammar) -> None:
        self.grammar = grammar
        self._environment = ImmutableSandboxedEnvironment()
        self._templates: dict[tuple[str, str], Template | None] = {}

    def spoken(
        self,
        entity_id: str,
        name: str,
        state: str,
        attributes: Mapping[str, Any],
        words: Mapping[str, str] = _NONE,
    ) -> SpokenState:
        """Return a state in the words of the question that asks for it, or else of the language."""
        words = words or self.grammar.state_words.get(entity_id.partition(".")[0], _NONE)
        return SpokenState(entity_id, name, state, attributes, words.get(state, ""))

    def say(
        self,
        meaning: Meaning,
        slots: Mapping[str, Any],
        matched: Iterable[SpokenState] = (),
        unmatched: Iterable[SpokenState] = (),
    ) -> str:
        """Return the answer; if the language has none, the names with their states."""
        yes, no = list(matched), list(unmatched)
        first = (yes or no or [None])[0]  # type: ignore[list-item]
        template = self._template(meaning.intent, meaning.response)
        if template is not None:
            attributes = {state.entity_id: state.attributes for state in (*yes, *no)}
            try:
                said = template.render(
                    slots=slots,
                    state=first,
                    query={"matched": yes, "unmatched": no},
                    state_attr=lambda entity_id, name: attributes.get(entity_id, {}).get(name),
                )
            except Exception as error:
                _logger.debug("%s %s: %s", self.grammar.language, meaning.intent, error)
            else:
                said = " ".join(said.split())
                if said and not _nothing.search(said):
                    return said
        return ", ".join(f"{state.name}: {state.state_with_unit}" for state in (*yes, *no)) or DONE

    def _template(self, intent: str, response: str) -> Template | None:
        key = intent, response
        if key not in self._templates:
            texts = self.grammar.responses.get(intent, {})
            text = texts.get(response)
            try:
                self._templates[key] = self._environment.from_string(text) if text else None
            except TemplateError as error:
                _logger.debug("%s %s: %s", self.grammar.language, intent, error)
                self._templates[key] = None
        return self._templates[key]


def _rounded(state: str) -> str:
    """A measured number is said with few digits."""
    whole, point, digits = state.partition(".")
    if point and len(digits) > _DECIMALS and digits.isdecimal() and whole.lstrip("-").isdecimal():
        return f"{float(state):.{_DECIMALS}f}".rstrip("0").rstrip(".")
    return state
