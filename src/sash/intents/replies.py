"""Writes answers in a language, with the templates of home-assistant-intents."""

import logging
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from jinja2 import Template, TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from sash.intents.grammar import Grammar, Interpretation

# The answer if a language has no template.
DEFAULT_REPLY = "OK."
_MAX_DECIMALS = 2


class _AlreadySo(NamedTuple):
    """Sentences about entities that already have the requested state.

    `one` and `several` name the state, for languages whose word for it is the same for all nouns.
    """

    without_state: str
    one: str = ""
    several: str = ""


_ALREADY_SO = {
    "en": _AlreadySo(
        "That is already so: {names}.", "{names} is already {state}.", "{names} are already {state}."
    ),
    "de": _AlreadySo(
        "Das ist schon so: {names}.", "{names} ist bereits {state}.", "{names} sind bereits {state}."
    ),
    "nl": _AlreadySo("Dat is al zo: {names}.", "{names} is al {state}.", "{names} zijn al {state}."),
    "fr": _AlreadySo("C'est déjà le cas : {names}."),
    "es": _AlreadySo("Ya está así: {names}."),
    "it": _AlreadySo("È già così: {names}."),
}
# The answer to a "no", if an action needed an approval.
_DENIED = {
    "en": "OK, I will not do that.",
    "de": "Gut, ich mache es nicht.",
    "nl": "Goed, ik doe het niet.",
    "fr": "D'accord, je ne le fais pas.",
    "es": "De acuerdo, no lo hago.",
    "it": "Va bene, non lo faccio.",
}
_NO_WORDS: Mapping[str, str] = {}

# The output of a template with a missing value.
_NONE_PATTERN = re.compile(r"\bNone\b")
_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, eq=False)
class SpokenState:
    """A state for the templates. It equals a string with the same state."""

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
        text = self.word or _round_number(self.state.replace("_", " "))
        return f"{text} {unit}" if unit else text


class ReplyWriter:
    """Fills the templates of one language."""

    def __init__(self, grammar: Grammar) -> None:
        self.grammar = grammar
        self._environment = ImmutableSandboxedEnvironment()
        self._templates: dict[tuple[str, str], Template | None] = {}

    def describe_state(
        self,
        entity_id: str,
        name: str,
        state: str,
        attributes: Mapping[str, Any],
        words: Mapping[str, str] = _NO_WORDS,
    ) -> SpokenState:
        """Return a state in the words of the question (`words`), or in the usual words of the language."""
        words = words or self.grammar.state_words.get(entity_id.partition(".")[0], _NO_WORDS)
        return SpokenState(entity_id, name, state, attributes, words.get(state, ""))

    def write(
        self,
        interpretation: Interpretation,
        slots: Mapping[str, Any],
        matched: Iterable[SpokenState] = (),
        unmatched: Iterable[SpokenState] = (),
    ) -> str:
        """Return the answer to a sentence. Without a usable template, list the names with their states."""
        matched, unmatched = list(matched), list(unmatched)
        first = (matched or unmatched or [None])[0]  # type: ignore[list-item]
        template = self.get_template(interpretation.intent, interpretation.response)
        if template is not None:
            attributes = {state.entity_id: state.attributes for state in (*matched, *unmatched)}
            try:
                text = template.render(
                    slots=slots,
                    state=first,
                    query={"matched": matched, "unmatched": unmatched},
                    state_attr=lambda entity_id, name: attributes.get(entity_id, {}).get(name),
                )
            except Exception as error:
                _logger.debug(
                    "response template %s %s failed: %s", self.grammar.language, interpretation.intent, error
                )
            else:
                text = " ".join(text.split())
                if text and not _NONE_PATTERN.search(text):
                    return text
        return _list_states((*matched, *unmatched))

    def write_already_so(self, states: Iterable[SpokenState]) -> str:
        """Return a sentence that the entities already have these states. Other languages list the states."""
        states = list(states)
        sentences = _ALREADY_SO.get(self.grammar.language.partition("-")[0])
        if sentences is None:
            return _list_states(states)
        names, words = ", ".join(state.name for state in states), {state.word for state in states}
        word = words.pop() if len(words) == 1 else ""
        sentence = sentences.one if len(states) == 1 else sentences.several
        return (sentence if word and sentence else sentences.without_state).format(names=names, state=word)

    def write_denied(self) -> str:
        """Return a sentence that an action will not be done, because the user denied it."""
        return _DENIED.get(self.grammar.language.partition("-")[0], DEFAULT_REPLY)

    def get_template(self, intent: str, response: str) -> Template | None:
        """Return the compiled template of a response; None if there is none, or it is invalid."""
        key = intent, response
        if key not in self._templates:
            texts = self.grammar.responses.get(intent, {})
            text = texts.get(response)
            try:
                self._templates[key] = self._environment.from_string(text) if text else None
            except TemplateError as error:
                _logger.debug("response template %s %s is invalid: %s", self.grammar.language, intent, error)
                self._templates[key] = None
        return self._templates[key]


def _list_states(states: Iterable[SpokenState]) -> str:
    return ", ".join(f"{state.name}: {state.state_with_unit}" for state in states) or DEFAULT_REPLY


def _round_number(state: str) -> str:
    """Return a state with at most two decimals if it is a number, else unchanged."""
    whole, point, digits = state.partition(".")
    if point and len(digits) > _MAX_DECIMALS and digits.isdecimal() and whole.lstrip("-").isdecimal():
        return f"{float(state):.{_MAX_DECIMALS}f}".rstrip("0").rstrip(".")
    return state
