"""The grammar of a language: its sentences and their interpretations.

hassil reads the grammar from home-assistant-intents. The names of a home are passed to it as lists.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

from hassil.expression import ListReference, Sentence
from hassil.intents import Intent, IntentData, SlotList, TextSlotList
from hassil.intents import Intents as Sentences
from hassil.models import MatchEntity
from hassil.parse_expression import parse_sentence
from hassil.recognize import RecognizeResult, recognize_all
from hassil.sample import sample_expression
from hassil.string_matcher import MatchContext, MatchSettings, match_expression
from hassil.util import CJK_WHITESPACE, is_template, normalize_for_matching, remove_skip_words_tracked
from home_assistant_intents import get_intents, get_languages

from sash.values.garbage import pause_collection

# Other codes of a language, and the default variant of a language.
_LANGUAGE_ALIASES = {
    "zh": "zh-CN",
    "zh-hans": "zh-CN",
    "zh-sg": "zh-CN",
    "zh-hant": "zh-TW",
    "zh-mo": "zh-HK",
    "no": "nb",
    "nn": "nb",
    "iw": "he",
    "in": "id",
    "gsw": "de-CH",
    "sr-cyrl": "sr",
}

# A hyphen or an underscore may stand between words.
_SEPARATORS_TO_SPACES = str.maketrans("-_", "  ")

# Returns the lists of the names that occur in a sentence.
FindNames = Callable[[str], Mapping[str, SlotList]]
# Slots that identify entities.
_TARGET_SLOTS = frozenset({"name", "area", "floor", "domain", "device_class"})
# A sentence must contain at least one word of each clause.
RequiredClauses = frozenset[frozenset[str]]
# Marks in a clause that the area of the speaker must be known.
_SPEAKER_AREA_MARK = "\0here"
Rank = tuple[bool, int, int, int, int]


@dataclass(frozen=True, slots=True)
class Slot:
    """A slot of a sentence: `text` as it was written, and the `value` that it means.

    A wildcard slot accepts any words, so its value may be wrong.
    """

    value: Any
    text: str
    is_wildcard: bool = False


@dataclass(frozen=True, slots=True)
class Interpretation:
    """A possible interpretation of a sentence: its intent, its slots, and the key of the response template.

    `state_words` are the names of states in a question: {"off": "closed"}. A higher `rank` means that names
    and grammar words explain more of the sentence. `is_bare` is True for a sentence of names only: "the
    kitchen light" may be a command, or the answer to a question.
    """

    intent: str
    response: str
    slots: Mapping[str, Slot]
    state_words: Mapping[str, str]
    rank: Rank
    is_bare: bool = False

    def get_value(self, slot: str) -> Any:
        """Return the value of a slot; None if the sentence has no such slot."""
        found = self.slots.get(slot)
        return None if found is None else found.value


def list_languages() -> list[str]:
    """Return the codes of the languages that have a grammar."""
    return sorted(get_languages())


@lru_cache(maxsize=256)
def find_language(code: str) -> str | None:
    """Return the code of the best grammar for a language; None if there is none.

    "en-US" gives "en", and "pt_br" gives "pt-BR".
    """
    languages = {language.casefold(): language for language in get_languages()}
    wanted = code.strip().replace("_", "-").casefold()
    while wanted:
        if found := languages.get(_LANGUAGE_ALIASES.get(wanted, wanted).casefold()):
            return found
        wanted = wanted.rpartition("-")[0]
    return None


@cache
def load_grammar(language: str) -> "Grammar":
    """Load and cache the grammar of a language. Call it in a thread: it takes up to half a second."""
    # A grammar has some 70,000 objects and is never dropped.
    with pause_collection():
        data = get_intents(language)
        if data is None:
            raise ValueError(f"home-assistant-intents has no language {language!r}")
        return Grammar(data)


class Grammar:
    """Interprets the sentences of a language. It is immutable and thread-safe."""

    def __init__(self, data: dict[str, Any]) -> None:
        self.language: str = data["language"]
        self.responses: dict[str, dict[str, str]] = data["responses"]["intents"]
        self.sentences = Sentences.from_dict(data)
        self.sentences.skip_words = list(_expand(self.sentences.skip_words))
        self._words: dict[str, dict[str, str]] = {}
        for name, values in self.sentences.slot_lists.items():
            if isinstance(values, TextSlotList):
                self._words[name] = _find_spoken_values(values)
            _build_list_index(name, values, self.language)
        self._blocks = [
            (intent.name, block, self._find_required_clauses(block))
            for intent in self.sentences.intents.values()
            for block in intent.data
        ]
        self._clauses = {
            clause for *_, required in self._blocks for template in required for clause in template
        }
        words: set[str] = set().union(*self._clauses)
        self._fragments = [word for word in words if not word.startswith("\0")]
        self.state_words = self._find_state_words()

    def interpret(
        self, text: str, find_names: FindNames, speaker_area: Slot | None = None, *, narrow: bool = True
    ) -> list[Interpretation]:
        """Return all interpretations of a sentence, best first.

        `narrow` makes it faster and does not change the result.
        """
        searchable = self._normalize(text)
        lists = find_names(searchable)
        marks = _list_marks(lists, speaker_area)
        context = {"area": {"value": speaker_area.value, "text": speaker_area.text}} if speaker_area else None
        results = recognize_all(
            text,
            self._narrow(searchable, marks) if narrow else self.sentences,
            slot_lists=dict(lists),
            intent_context=context,
            language=self.language,
        )
        found = map(self._read_result, results)
        return sorted(found, key=lambda interpretation: interpretation.rank, reverse=True)

    def _find_required_clauses(self, block: IntentData) -> frozenset[RequiredClauses]:
        """Return the required clauses of each template in a block.

        A clause is a set of words, and a sentence must have one of them. A clause may also have marks.
        """
        rules = {**self.sentences.expansion_rules, **block.expansion_rules}
        context = block.requires_context
        marks = {frozenset({_SPEAKER_AREA_MARK})} if "area" in context else set()
        if "domain" in context:
            marks.add(frozenset(map(_make_domain_mark, context["domain"])))
        return frozenset(sentence.get_required_clauses(rules) | marks for sentence in block.sentences)

    def _narrow(self, searchable: str, marks: Iterable[str]) -> Sentences:
        """Return the part of the grammar that can match a sentence: a few of some hundred blocks.

        Hassil makes the same checks for each template. To check each clause once is several times as fast.
        `marks` are those of the sentence.
        """
        present = {fragment for fragment in self._fragments if fragment in searchable}
        present.update(marks)
        met = {clause for clause in self._clauses if not clause.isdisjoint(present)}
        intents: dict[str, Intent] = {}
        for name, block, required in self._blocks:
            if any(template <= met for template in required):
                intents.setdefault(name, Intent(name)).data.append(block)
        whole = self.sentences
        return Sentences(
            whole.language, intents, whole.slot_lists, whole.expansion_rules, whole.skip_words, whole.settings
        )

    def _normalize(self, text: str) -> str:
        """Return a sentence in every form that hassil compares with a template or a name."""
        whole = normalize_for_matching(text)
        rest = whole.copy()
        remove_skip_words_tracked(rest, self.sentences.skip_words, self.sentences.settings.ignore_whitespace)
        searchable = f"{whole.text}\n{rest.text}".casefold()
        forms = (
            searchable,
            searchable.translate(_SEPARATORS_TO_SPACES),
            CJK_WHITESPACE.sub("", searchable),
        )
        return "\n".join(dict.fromkeys(forms))

    def _read_result(self, result: RecognizeResult) -> Interpretation:
        slots = {name: _read_slot(found, result.original_text) for name, found in result.entities.items()}
        name, wildcards = slots.get("name"), [slot for slot in slots.values() if slot.is_wildcard]
        is_named = name is not None and not name.is_wildcard
        return Interpretation(
            result.intent.name,
            result.response or "default",
            slots,
            self._find_list_words(result.intent_sentence) if "state" in slots else {},
            (
                is_named,
                len(name.text) if name and is_named else 0,
                -len(wildcards),
                result.text_chunks_matched,
                -sum(len(slot.text) for slot in wildcards),
            ),
            slots.keys() <= _TARGET_SLOTS and self._is_bare(result.intent_sentence),
        )

    def _is_bare(self, sentence: Sentence | None) -> bool:
        """Return whether a template requires no words except names."""
        return sentence is None or not sentence.get_required_clauses(self.sentences.expansion_rules)

    def _find_list_words(self, sentence: Sentence | None) -> Mapping[str, str]:
        """Return the names of states in the list that a template uses; empty if it uses none."""
        if sentence is None:
            return {}
        for reference in sentence.expression.list_references(self.sentences.expansion_rules):  # type: ignore[attr-defined]
            if reference.slot_name == "state":
                return self._words.get(reference.list_name, {})
        return {}

    def _find_state_words(self) -> dict[str, dict[str, str]]:
        """Return the names of states by domain, as in yes-or-no questions: "an" for a light that is on."""
        found: dict[str, dict[str, str]] = {}
        for name, block, _ in self._blocks:
            if name != "HassGetState":
                continue
            for domain in block.domains - {"binary_sensor", "person"}:
                words = found.setdefault(domain, {})
                for sentence in block.sentences:
                    words.update({k: v for k, v in self._find_list_words(sentence).items() if k not in words})
        return found


def _make_domain_mark(domain: str) -> str:
    """Return the mark for a domain: a text that stands for "the sentence names an entity of this domain"."""
    return f"\0{domain}"


def _list_marks(lists: Mapping[str, SlotList], area: Slot | None) -> set[str]:
    """Return the marks of a sentence: for the domains of its names, and for a known area of the speaker."""
    names = lists["name"]
    found = [value.context or {} for value in names.values] if isinstance(names, TextSlotList) else []
    return {_make_domain_mark(context["domain"]) for context in found} | (
        {_SPEAKER_AREA_MARK} if area else set()
    )


def _build_list_index(name: str, values: SlotList, language: str) -> None:
    """Make hassil index a list now, not at the first sentence that uses it."""
    settings = MatchSettings(slot_lists={name: values}, language=language)
    for _ in match_expression(settings, MatchContext(text="-"), ListReference(list_name=name)):
        pass


def _read_slot(found: MatchEntity, sentence: str) -> Slot:
    """Convert a slot of hassil. A wildcard keeps the punctuation of the sentence, which hassil removes."""
    if found.is_wildcard:
        start, end = found.text_span or (0, 0)
        text = sentence[start:end].strip() or found.text.strip()
        return Slot(text, text, is_wildcard=True)
    value = found.value
    whole = isinstance(value, float) and value.is_integer()
    return Slot(int(value) if whole else value, (found.text or "").strip())


def _expand(phrases: Iterable[str]) -> Iterator[str]:
    """Yield the phrases, and for a template all its forms. Hassil would treat a template as plain text."""
    for phrase in phrases:
        if is_template(phrase):
            yield from filter(
                None, (said.strip() for said in sample_expression(parse_sentence(phrase).expression))
            )
        else:
            yield phrase


def _find_spoken_values(values: TextSlotList) -> dict[str, str]:
    """Return the first spoken form of each value of a list, by value."""
    spoken: dict[str, str] = {}
    for value in values.values:
        if isinstance(value.value_out, str) and value.value_out not in spoken:
            said = next(iter(sample_expression(value.text_in, skip_optionals=True)), "").strip()
            if said:
                spoken[value.value_out] = said
    return spoken
