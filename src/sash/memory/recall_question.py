"""Reads what a question asks an old conversation for: words with their forms, speakers, and a time."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from sash.memory.asked_period import read_period
from sash.memory.asked_words import AskedWord
from sash.memory.recall_lexicon import RecallLexicon, choose_language, load_recall_lexicon
from sash.memory.recall_ranking import Period
from sash.memory.words import ends_with_question_mark, has_question_mark, is_unspaced, split_word, split_words

# The speakers whose names are not known.
ANY_USER, ANY_AGENT = "user", "assistant"
# The maximum number of words that are looked for; of a text without blanks, of pairs of letters.
MAX_WORDS, MAX_PAIRS = 12, 40
MAX_CHARS = 2000
# A word of this length or less is no beginning of other words.
_MAX_EXACT_LENGTH = 3
# A full stop behind a word of fewer letters may belong to an abbreviation.
_MIN_LAST_WORD = 4
# A shorter word is no participle, even if it has the ending of one.
_MIN_PARTICIPLE = 5
# These end a sentence without a blank behind them.
_WIDE_ENDS = "\u3002\uff01\uff1f"
# The beginning of so long a word seldom begins another one. A shorter word with irregular forms is looked for
# by these forms only.
_MIN_PREFIX_LENGTH = 7
# The last letters of a longer word may change.
_ENDING, _MIN_STEM = 3, 4


@dataclass(frozen=True, slots=True)
class RecallQuestion:
    """A question for old messages, with the words that have a topic.

    `telling` are the numbers of those words that are not among the commonest words of the language.
    If the question speaks of one speaker ("I", "you" or a name), `said_by` is this speaker's name, or
    `ANY_USER` or `ANY_AGENT`. `named` are the speakers that it names, without the asker and the agent.
    `looks_back` is True if it is about the past, and `is_request` if it asks the agent to act: "can you …".
    """

    words: tuple[AskedWord, ...]
    telling: frozenset[int] = frozenset()
    said_by: str | None = None
    named: frozenset[str] = frozenset()
    period: Period | None = None
    looks_back: bool = False
    is_request: bool = False

    @property
    def is_about_time(self) -> bool:
        """True for a question with a time and without a topic: "what did we talk about yesterday?"."""
        return self.period is not None and not self.words


def read_question(
    text: str,
    *,
    names: Iterable[str] = (),
    asker: str = ANY_USER,
    agent: str = ANY_AGENT,
    language: str | None = None,
    now: datetime | None = None,
) -> RecallQuestion:
    """Read a question. `names` are those of all speakers, `asker` and `agent` those of "I" and "you"."""
    said = split_words(text[:MAX_CHARS])
    lexicon = load_recall_lexicon(choose_language(said, language))
    period, used = (None, frozenset[int]()) if now is None else read_period(said, lexicon, now)
    ordinary = lexicon.stop | lexicon.common
    own = {word: name for name in names for word in split_words(name) if word not in ordinary}
    by_name = {f"{word}s": name for word, name in own.items()} | own
    speakers = {by_name[word] for word in said if word in by_name}
    named = speakers - {asker, agent}
    if not speakers:
        if not lexicon.me.isdisjoint(said):
            speakers.add(asker)
        if not lexicon.you.isdisjoint(said):
            speakers.add(agent)
    asked = _choose_words(said, lexicon, by_name.keys(), used)
    if asked:
        # "The pizza on Monday" may have been spoken of before that Monday.
        asked += [said[n] for n in used if said[n] in lexicon.weekdays]
    by_forms = {list_forms(each, lexicon): each for each in reversed(asked)}
    words = _limit([AskedWord(word, forms) for forms, word in reversed(by_forms.items())])
    telling = frozenset(n for n, word in enumerate(words) if word.text not in lexicon.common)
    speaks_of_us = not (lexicon.me | lexicon.you).isdisjoint(said)
    is_past = _tells_of_past(said, lexicon) and (speaks_of_us or lexicon.current.isdisjoint(said))
    looks_back = is_past or refers_back(said, lexicon)
    if named and looks_back:
        telling = telling or frozenset(range(len(words)))
    said_by = next(iter(speakers)) if len(speakers) == 1 else None
    is_request = not looks_back and not lexicon.you.isdisjoint(said[:2])
    return RecallQuestion(words, telling, said_by, frozenset(named), period, looks_back, is_request)


def _limit(words: Sequence[AskedWord]) -> tuple[AskedWord, ...]:
    """Return the first words, and of the pairs of letters among them so many as have a topic."""
    pairs = [word for word in words if is_unspaced(word.text)]
    others = [word for word in words if not is_unspaced(word.text)]
    kept = {*others[:MAX_WORDS], *pairs[:MAX_PAIRS]}
    return tuple(word for word in words if word in kept)


def _tells_of_past(said: list[str], lexicon: RecallLexicon) -> bool:
    """Return whether words have a verb of the past: "did", "hat … gekauft", or "who fixed" without "is"."""
    if not lexicon.past.isdisjoint(said):
        return True
    if not lexicon.auxiliaries.isdisjoint(said) and any(_is_participle(word, lexicon) for word in said):
        return True
    asked = _skip_fillers(said, lexicon)
    asks_who = bool(asked) and asked[0] in lexicon.question_words and bool(lexicon.past_endings)
    return (
        asks_who
        and any(
            len(word) >= _MIN_PARTICIPLE
            and word.endswith(tuple(lexicon.past_endings))
            and not word.endswith(tuple(lexicon.other_endings))
            for word in asked[1:4]
        )
        and lexicon.present.isdisjoint(said)
    )


def _skip_fillers(said: list[str], lexicon: RecallLexicon) -> list[str]:
    """Return words without those that may stand before a question: "and", "ok"."""
    first = next((n for n, word in enumerate(said) if word not in lexicon.fillers), len(said))
    return said[first:]


def _is_participle(word: str, lexicon: RecallLexicon) -> bool:
    return len(word) >= _MIN_PARTICIPLE and any(
        word.startswith(starts) and word.endswith(ends) for starts, ends in lexicon.participles
    )


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
        and (len(word) > 1 or word.isdigit() or is_unspaced(word))
    ]
    chosen = asked or [word for word in said if word in names]
    return list(dict.fromkeys(part for word in chosen for part in _split_asked(word)))


def _split_asked(word: str) -> list[str]:
    """Return the parts of a word to look for. A letter that ends a pair is not looked for alone."""
    parts = split_word(word)
    return [part for n, part in enumerate(parts) if not n or len(part) > 1 or not parts[n - 1].endswith(part)]


def list_forms(word: str, lexicon: RecallLexicon) -> tuple[str, ...]:
    """Return the forms by which a word is found: its beginning, its irregular forms, or both."""
    forms = lexicon.forms.get(word, ())
    if forms and len(word) < _MIN_PREFIX_LENGTH:
        return forms
    own = [_cut(word)]
    if _MAX_EXACT_LENGTH < len(word) < _MIN_PREFIX_LENGTH and word.endswith(tuple(lexicon.past_endings)):
        own.append(word[:-2])
    if word.isalpha() and len(word) == _MAX_EXACT_LENGTH:
        own.append(f"{word}s")
    elif len(word) == _MAX_EXACT_LENGTH + 1 and word.endswith("s"):
        own.append(word[:-1])
    return tuple(dict.fromkeys((*own, *forms)))


def _cut(word: str) -> str:
    """Return the beginning that the regular forms of a word have in common, with a star."""
    if len(word) == 1 and is_unspaced(word):
        return f"{word}*"
    if len(word) <= _MAX_EXACT_LENGTH or not word.isalpha():
        return word
    return f"{word[: max(_MIN_STEM, len(word) - _ENDING)]}*"


def is_asking(text: str, language: str | None = None) -> bool:
    """Return whether a message asks something: by its mark, its first words, or a reference to the past."""
    text = text[:MAX_CHARS]
    said = split_words(text)
    lexicon = load_recall_lexicon(choose_language(said, language))
    return has_question_mark(text) or _begins_as_question(text, said, lexicon) or refers_back(said, lexicon)


def _begins_as_question(text: str, said: list[str], lexicon: RecallLexicon) -> bool:
    """Return whether a text or its last part begins as a question: "in which year", "the soup, how much"."""
    last = split_words(text.rpartition(",")[2])
    said = _skip_fillers(said, lexicon)
    return (
        (bool(said) and said[0] in lexicon.openers)
        or (len(said) > 1 and said[0] in lexicon.stop and said[1] in lexicon.question_words)
        or (bool(last) and last[0] in lexicon.clause_openers)
    )


def refers_back(said: list[str], lexicon: RecallLexicon) -> bool:
    """Return whether words refer to an earlier conversation: "remember", "back then"."""
    text = f" {' '.join(said)} "
    return any(f" {' '.join(phrase)} " in text for phrase in lexicon.back)


def find_question(text: str, language: str | None = None) -> str:
    """Return what a message asks: its last question, or else the message. A long one is read at both ends."""
    if len(text) <= MAX_CHARS:
        return cut_question(text)
    at_end, at_start = cut_question(text[-MAX_CHARS:]), cut_question(text[:MAX_CHARS])
    return at_start if is_asking(at_start, language) and not is_asking(at_end, language) else at_end


def cut_question(text: str) -> str:
    """Return the last sentence that ends with a question mark, or else the whole text."""
    sentences = split_sentences(text)
    return next((each for each in reversed(sentences) if ends_with_question_mark(each)), text)


def split_sentences(text: str) -> list[str]:
    """Return the sentences of a text.

    A full stop behind a short word or a number ends none: "Dr. Smith", "3. April".
    """
    sentences, start = [], 0
    for n, sign in enumerate(text):
        is_last = n + 1 == len(text) or text[n + 1].isspace()
        word = text[max(start, n - _MIN_LAST_WORD) : n]
        ends = sign in "!?\n" or (sign == "." and len(word) == _MIN_LAST_WORD and word.isalpha())
        if (ends and is_last) or sign in _WIDE_ENDS:
            sentences.append(text[start : n + 1].strip())
            start = n + 1
    return [each for each in (*sentences, text[start:].strip()) if each]
