"""The grammar of a language: which sentences there are, and what each of them may mean.

It is the grammar of home-assistant-intents, read by hassil. It knows the names in a house only as lists that
it is given, and does nothing.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
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

# How many languages are kept, at some ten megabytes each: a house speaks one or two.
LANGUAGES_KEPT = 8
# What a language is called elsewhere, and what is spoken if only the language is said.
_CALLED = {
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

# Words may be written as one.
_BREAKS = str.maketrans("-_", "  ")

# Gives the lists of the names that are in a sentence.
NamesWithin = Callable[[str], Mapping[str, SlotList]]
# What says which thing is meant, and not what is wanted of it.
_WHERE = frozenset({"name", "area", "floor", "domain", "device_class"})
# What a sentence must have: of each clause at least one word.
Needs = frozenset[frozenset[str]]
# Stands for a word that says where the speaker is.
_HERE = "\0here"
Rank = tuple[bool, int, int, int, int]


@dataclass(frozen=True, slots=True)
class Slot:
    """What a sentence says in one of its places: `text` as it was said, `value` as it is meant.

    A wildcard takes any words, so that it is not sure that they mean what the grammar takes them for.
    """

    value: Any
    text: str
    wildcard: bool = False


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a sentence may mean: the intent, what is said in it, and the key of its answer.

    `words` are what the states are called that it asks for: {"off": "closed"}. The higher its `rank`, the
    more of the sentence is explained by names and by words of the grammar. A `bare` one needs no words but
    names: "the kitchen light" may be an order, or an answer to a question.
    """

    intent: str
    response: str
    slots: Mapping[str, Slot]
    words: Mapping[str, str]
    rank: Rank
    bare: bool = False

    def value(self, slot: str) -> Any:
        """Return what is meant in a place; None if the sentence has no such place."""
        found = self.slots.get(slot)
        return None if found is None else found.value


@lru_cache(maxsize=256)
def closest_language(called: str) -> str | None:
    """Return the grammar's name for a language: "en" for "en-US", "pt-BR" for "pt_br"; None if none."""
    languages = {language.casefold(): language for language in get_languages()}
    wanted = called.strip().replace("_", "-").casefold()
    while wanted:
        if found := languages.get(_CALLED.get(wanted, wanted).casefold()):
            return found
        wanted = wanted.rpartition("-")[0]
    return None


@lru_cache(maxsize=LANGUAGES_KEPT)
def load_grammar(language: str) -> "Grammar":
    """Read the grammar of a language, once. That takes up to half a second, so it is for a thread."""
    data = get_intents(language)
    if data is None:
        raise ValueError(f"home-assistant-intents has no language {language!r}")
    return Grammar(data)


class Grammar:
    """Recognises the sentences of a language. Nothing in it changes: any thread may use it."""

    def __init__(self, data: dict[str, Any]) -> None:
        self.language: str = data["language"]
        self.responses: dict[str, dict[str, str]] = data["responses"]["intents"]
        self._sentences = Sentences.from_dict(data)
        self._sentences.skip_words = list(_expanded(self._sentences.skip_words))
        self._words: dict[str, dict[str, str]] = {}
        for name, values in self._sentences.slot_lists.items():
            if isinstance(values, TextSlotList):
                self._words[name] = _spoken(values)
            _prepare(name, values, self.language)
        self._blocks = [
            (intent.name, block, self._needs(block))
            for intent in self._sentences.intents.values()
            for block in intent.data
        ]
        self._clauses = {clause for *_, needs in self._blocks for template in needs for clause in template}
        words: set[str] = set().union(*self._clauses)
        self._fragments = [word for word in words if not word.startswith("\0")]
        self.state_words = self._words_by_domain()

    def recognise(self, text: str, names: NamesWithin, area: Slot | None = None) -> list[Meaning]:
        """Return all that a sentence may mean, best first; `area` is where the speaker is."""
        haystack = self._haystack(text)
        lists = names(haystack)
        results = recognize_all(
            text,
            self._candidates(haystack, _marks(lists, area)),
            slot_lists=dict(lists),
            intent_context={"area": {"value": area.value, "text": area.text}} if area else None,
            language=self.language,
        )
        return sorted(map(self._meaning, results), key=lambda meaning: meaning.rank, reverse=True)

    def _needs(self, block: IntentData) -> frozenset[Needs]:
        """Return for each template of a block what a sentence must have to be one of it."""
        rules = {**self._sentences.expansion_rules, **block.expansion_rules}
        context = block.requires_context
        marks = {frozenset({_HERE})} if "area" in context else set()
        if "domain" in context:
            marks.add(frozenset(map(_mark, context["domain"])))
        return frozenset(sentence.get_required_clauses(rules) | marks for sentence in block.sentences)

    def _candidates(self, haystack: str, marks: Iterable[str]) -> Sentences:
        """Return the part of the grammar that a sentence can be of: a few of some hundred blocks.

        Hassil asks each template the same, and more; to ask for each clause once is several times as fast.
        """
        there = {fragment for fragment in self._fragments if fragment in haystack}
        there.update(marks)
        met = {clause for clause in self._clauses if not clause.isdisjoint(there)}
        intents: dict[str, Intent] = {}
        for name, block, needs in self._blocks:
            if any(template <= met for template in needs):
                intents.setdefault(name, Intent(name)).data.append(block)
        whole = self._sentences
        return Sentences(
            whole.language, intents, whole.slot_lists, whole.expansion_rules, whole.skip_words, whole.settings
        )

    def _haystack(self, text: str) -> str:
        """Return a sentence in every form that hassil compares with a template or a name."""
        said = normalize_for_matching(text)
        rest = said.copy()
        remove_skip_words_tracked(
            rest, self._sentences.skip_words, self._sentences.settings.ignore_whitespace
        )
        haystack = f"{said.text}\n{rest.text}".casefold()
        forms = (haystack, haystack.translate(_BREAKS), CJK_WHITESPACE.sub("", haystack))
        return "\n".join(dict.fromkeys(forms))

    def _meaning(self, result: RecognizeResult) -> Meaning:
        slots = {name: _slot(found, result.original_text) for name, found in result.entities.items()}
        name, wild = slots.get("name"), [slot for slot in slots.values() if slot.wildcard]
        named = name is not None and not name.wildcard
        return Meaning(
            result.intent.name,
            result.response or "default",
            slots,
            self._words_of(result.intent_sentence) if "state" in slots else {},
            (
                named,
                len(name.text) if name and named else 0,
                -len(wild),
                result.text_chunks_matched,
                -sum(len(slot.text) for slot in wild),
            ),
            slots.keys() <= _WHERE and self._is_bare(result.intent_sentence),
        )

    def _is_bare(self, sentence: Sentence | None) -> bool:
        """Whether a template asks for no word that is not a name."""
        return sentence is None or not sentence.get_required_clauses(self._sentences.expansion_rules)

    def _words_of(self, sentence: Sentence | None) -> Mapping[str, str]:
        """Return what states are called by the list that a template takes them from."""
        if sentence is None:
            return {}
        for reference in sentence.expression.list_references(self._sentences.expansion_rules):  # type: ignore[attr-defined]
            if reference.slot_name == "state":
                return self._words.get(reference.list_name, {})
        return {}

    def _words_by_domain(self) -> dict[str, dict[str, str]]:
        """Return what states are called where they are asked for by yes and no, such as "an" for a light."""
        found: dict[str, dict[str, str]] = {}
        for name, block, _ in self._blocks:
            if name != "HassGetState":
                continue
            for domain in block.domains - {"binary_sensor", "person"}:
                words = found.setdefault(domain, {})
                for sentence in block.sentences:
                    words.update({k: v for k, v in self._words_of(sentence).items() if k not in words})
        return found


def _mark(domain: str) -> str:
    """Stands for the name of an entity of a domain."""
    return f"\0{domain}"


def _marks(lists: Mapping[str, SlotList], area: Slot | None) -> set[str]:
    """Return what stands for the names in a sentence, and for the place of the speaker."""
    names = lists["name"]
    found = [value.context or {} for value in names.values] if isinstance(names, TextSlotList) else []
    return {_mark(context["domain"]) for context in found} | ({_HERE} if area else set())


def _prepare(name: str, values: SlotList, language: str) -> None:
    """Let hassil index a list now, and not with the first sentence that has it: numbers take it long."""
    settings = MatchSettings(slot_lists={name: values}, language=language)
    for _ in match_expression(settings, MatchContext(text="-"), ListReference(list_name=name)):
        pass


def _slot(found: MatchEntity, sentence: str) -> Slot:
    """Return what is said in a place; a wildcard word for word, with the signs that hassil takes away."""
    if found.is_wildcard:
        start, end = found.text_span or (0, 0)
        text = sentence[start:end].strip() or found.text.strip()
        return Slot(text, text, wildcard=True)
    value = found.value
    whole = isinstance(value, float) and value.is_integer()
    return Slot(int(value) if whole else value, (found.text or "").strip())


def _expanded(phrases: Iterable[str]) -> Iterator[str]:
    """Return phrases as they are said: some are written as templates, which hassil takes for plain text."""
    for phrase in phrases:
        if is_template(phrase):
            yield from filter(
                None, (said.strip() for said in sample_expression(parse_sentence(phrase).expression))
            )
        else:
            yield phrase


def _spoken(values: TextSlotList) -> dict[str, str]:
    """Return what the values of a list are called: each by the first of its names."""
    spoken: dict[str, str] = {}
    for value in values.values:
        if isinstance(value.value_out, str) and value.value_out not in spoken:
            said = next(iter(sample_expression(value.text_in, skip_optionals=True)), "").strip()
            if said:
                spoken[value.value_out] = said
    return spoken
