"""Reads what a question asks an old conversation for: words with their forms, speakers, and a time."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime

from sash.memory.asked_period import read_period
from sash.memory.recall_lexicon import RecallLexicon, choose_language, load_recall_lexicon
from sash.memory.recall_ranking import Period
from sash.memory.words import split_typed, split_words

MAX_WORDS = 12
MAX_CHARS = 2000
# A word of this length or less is no beginning of other words.
_SHORT = 3
# A full stop behind a word of fewer letters may belong to an abbreviation.
_MIN_LAST_WORD = 4
# The beginning of so long a word seldom begins another one. Shorter ones have only their irregular forms.
_LONG = 7
# The last letters of a longer word may change.
_ENDING, _MIN_STEM = 3, 4


@dataclass(frozen=True, slots=True)
class RecallQuestion:
    """A question for old messages: its words `asked`, and their forms in `words`: "boil*" begins a word.

    `telling` are the places in `words` of those that are not among the commonest words of the language.
    `speakers` are those whom it names, as messages have them. `looks_back` is True if it tells of the past.
    """

    asked: tuple[str, ...]
    words: tuple[tuple[str, ...], ...]
    telling: frozenset[int] = frozenset()
    speakers: frozenset[str] = frozenset()
    period: Period | None = None
    looks_back: bool = False


def read_question(
    text: str,
    *,
    names: Iterable[str] = (),
    asker: str = "user",
    agent: str = "assistant",
    language: str | None = None,
    now: datetime | None = None,
) -> RecallQuestion:
    """Read a question. `names` are those of all speakers, `asker` and `agent` those of "I" and "you"."""
    said = split_words(text[:MAX_CHARS])
    lexicon = load_recall_lexicon(choose_language(said, language))
    period, used = (None, frozenset[int]()) if now is None else read_period(said, lexicon, now)
    by_name = {word: name for name in names for word in split_words(name)}
    speakers = {by_name[word] for word in said if word in by_name}
    if not speakers:
        if not lexicon.me.isdisjoint(said):
            speakers.add(asker)
        if not lexicon.you.isdisjoint(said):
            speakers.add(agent)
    asked = _choose_words(said, lexicon, by_name.keys(), used)
    typed = _match_typed(said, text[:MAX_CHARS])
    by_forms = {list_forms(each, lexicon, typed.get(each, each)): each for each in reversed(asked)}
    words = tuple(reversed(by_forms))[:MAX_WORDS]
    telling = frozenset(n for n, forms in enumerate(words) if by_forms[forms] not in lexicon.common)
    looks_back = not lexicon.past.isdisjoint(said) or refers_back(said, lexicon)
    shown = tuple(by_forms[forms] for forms in words)
    return RecallQuestion(shown, words, telling, frozenset(speakers), period, looks_back)


def _choose_words(
    said: list[str], lexicon: RecallLexicon, names: Collection[str], used: Collection[int]
) -> list[str]:
    """Return the words that have a topic, or the names if no word has one."""
    asked = [
        word
        for n, word in enumerate(said)
        if n not in used
        and word not in lexicon.stop
        and word not in names
        and (len(word) > 1 or word.isdigit())
    ]
    return list(dict.fromkeys(asked or [word for word in said if word in names]))


def _match_typed(said: list[str], text: str) -> dict[str, str]:
    """Return the words of a text as they were typed, by their normal form."""
    typed = split_typed(text)
    return dict(zip(said, typed, strict=True)) if len(typed) == len(said) else {}


def list_forms(word: str, lexicon: RecallLexicon, typed: str) -> tuple[str, ...]:
    """Return the forms by which a word is found: its beginning, or its irregular forms.

    A full-text index keeps the marks of letters that are not Latin. Such a word is found as it is `typed`.
    """
    forms = lexicon.forms.get(word, ())
    if forms and len(word) < _LONG:
        return forms
    own = [_cut(word)]
    if word.isalpha() and len(word) == _SHORT:
        own.append(f"{word}s")
    elif len(word) == _SHORT + 1 and word.endswith("s"):
        own.append(word[:-1])
    if typed != word and not typed[0].isascii():
        own.append(_cut(typed))
    return tuple(dict.fromkeys((*own, *forms)))


def _cut(word: str) -> str:
    """Return the beginning that the regular forms of a word have in common, with a star."""
    if len(word) <= _SHORT or not word.isalpha():
        return word
    return f"{word[: max(_MIN_STEM, len(word) - _ENDING)]}*"


def is_asking(text: str, language: str | None = None) -> bool:
    """Return whether a message asks something: by its mark, its first word, or a reference to the past."""
    said = split_words(text[:MAX_CHARS])
    lexicon = load_recall_lexicon(choose_language(said, language))
    return "?" in text or bool(said and said[0] in lexicon.openers) or refers_back(said, lexicon)


def refers_back(said: list[str], lexicon: RecallLexicon) -> bool:
    """Return whether words refer to an earlier conversation: "remember", "back then"."""
    text = f" {' '.join(said)} "
    return any(f" {' '.join(phrase)} " in text for phrase in lexicon.back)


def cut_question(text: str) -> str:
    """Return the last sentence that ends with a question mark, or else the whole text."""
    sentences = split_sentences(text)
    return next((each for each in reversed(sentences) if each.rstrip().endswith("?")), text)


def split_sentences(text: str) -> list[str]:
    """Return the sentences of a text.

    A full stop behind a short word or a number ends none: "Dr. Smith", "3. April".
    """
    sentences, start = [], 0
    for n, sign in enumerate(text):
        is_last = n + 1 == len(text) or text[n + 1].isspace()
        word = text[max(start, n - _MIN_LAST_WORD) : n]
        ends = sign in "!?\n" or (sign == "." and len(word) == _MIN_LAST_WORD and word.isalpha())
        if ends and is_last:
            sentences.append(text[start : n + 1].strip())
            start = n + 1
    return [each for each in (*sentences, text[start:].strip()) if each]
