"""The lexicon of a language: its phrases by meaning. The files in `data/words` hold them."""

import tomllib
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.resources import files

from unicode_rbnf import RbnfEngine

from sash.intents.words.phrases import PhraseFinder, expand
from sash.intents.words.tokens import remove_accents, split_words

LANGUAGES = ("en", "de", "fr", "es", "it", "nl")
MAX_NUMBER_WORD = 100
MIN_VERB_CHARS = 3
# Sections whose phrases name things. They form the words of names.
NOUNS = ("kind", "room", "noun", "property")
# Sections whose phrases are often whole sentences.
CONVERSATION = ("talk", "self", "memory", "later")


class Lexicon:
    """The words of one language. It does not change, so that threads can share it."""

    def __init__(self, language: str) -> None:
        path = files("sash") / "data" / "words" / f"{language}.toml"
        data = tomllib.loads(path.read_text("utf-8"))
        self.language = language
        rewrites = data.pop("rewrite", {}).items()
        self.rewrites = {word.casefold(): tuple(text.casefold().split()) for word, text in rewrites}
        self.plurals = frozenset(map(str.casefold, data.pop("plural", {}).get("words", ())))
        particle = data.pop("particle", {})
        # A particle belongs to the verb before it, unless a word of `not_after_particle` follows.
        self.particles = frozenset(particle.get("words", ()))
        self.not_after_particle = frozenset(particle.get("not_before", ()))
        self.after_number = frozenset(data.pop("after_number", {}).get("words", ()))
        # "Che" before a kind of thing at the start of a sentence asks "which", and is else a link.
        self.which_at_start = frozenset(data.pop("which_at_start", {}).get("words", ()))
        # Words for states, which are no orders.
        self.participles = frozenset(data.pop("participle", {}).get("words", ()))
        self.articles = frozenset(data.pop("article", {}).get("words", ()))
        # Unknown words with such an ending only say how something is done: "immediately".
        self.adverb_endings = tuple(data.pop("adverb", {}).get("endings", ()))
        # "Please" and the like may stand inside a phrase: "what did you just say again?"
        self.inserts = PhraseFinder(("insert", each) for each in data.pop("insert", {}).get("words", ()))
        # A command needs no "that are on": it does nothing to other things.
        self.relatives = PhraseFinder(
            ("relative", each) for each in data.pop("relative", {}).get("words", ())
        )
        # "Isn't it" makes a statement a question, and so does "right" after a comma.
        tag = data.pop("tag", {})
        self.tags = frozenset(map(_write_phrase, _expand_all(tag.get("words", ()))))
        self.tags_after_comma = frozenset(map(_write_phrase, _expand_all(tag.get("after_comma", ()))))
        self.longest_tag = max((len(each.split()) for each in self.tags | self.tags_after_comma), default=0)
        self.numbers = _spell_numbers(language) | data.pop("number", {})
        self._attached = tuple(data.pop("attached", {}).get("words", ()))
        known = map(str.casefold, data.pop("known", {}).get("words", ()))
        phrases = [
            (section if key == "words" else f"{section}.{key}", phrase.casefold())
            for section, table in data.items()
            for key, listed in table.items()
            for phrase in listed
        ]
        self.noun_phrases: dict[str, list[str]] = {}
        for tag, phrase in phrases:
            if tag.partition(".")[0] in NOUNS:
                self.noun_phrases.setdefault(tag, []).append(" ".join(next(expand(phrase))))
        verbs = (phrase for tag, phrase in phrases if tag.startswith(("do.", "item.")) and phrase.isalpha())
        self._verbs = {remove_accents(verb): verb for verb in sorted(verbs)}
        phrases = [(tag, self._split_phrase(phrase)) for tag, phrase in phrases]
        self.finder = PhraseFinder(phrases)
        self.nouns = PhraseFinder((tag, phrase) for tag, phrase in phrases if tag.partition(".")[0] in NOUNS)
        self.conversation = PhraseFinder(
            (tag, phrase) for tag, phrase in phrases if tag.partition(".")[0] in CONVERSATION
        )
        self.times = PhraseFinder((tag, phrase) for tag, phrase in phrases if tag.startswith("time."))
        number_words = (word for text in self.numbers for word in text.split())
        tag_words = (word for each in self.tags | self.tags_after_comma for word in each.split())
        self.words = frozenset(
            {*self.finder.words, *self.relatives.words, *known, *number_words, *tag_words, *self.rewrites}
        )
        self._by_plain = {remove_accents(word): word for word in sorted(self.words)}

    def split_pronouns(self, word: str) -> tuple[str, ...]:
        """Return a verb and its attached pronouns: "apágala" is "apaga" and "la"."""
        if word in self._verbs.values():
            return (word,)
        for pronoun in self._attached:
            verb = remove_accents(word.removesuffix(pronoun))
            if not word.endswith(pronoun) or len(verb) < MIN_VERB_CHARS:
                continue
            if found := self._verbs.get(verb) or self._verbs.get(f"{verb}e"):
                return (found, pronoun)
            *verbs, last = self.split_pronouns(verb)
            if verbs:
                return (*verbs, last, pronoun)
        return (word,)

    def _split_phrase(self, phrase: str) -> str:
        """Return a phrase with the pronouns of its verbs as words of their own."""
        words = phrase.split() if self._attached else [phrase]
        return " ".join(
            part for word in words for part in (self.split_pronouns(word) if word.isalpha() else [word])
        )

    def find_word(self, word: str) -> str | None:
        """Return a word of the lexicon, also if it is written without its accents; None if unknown."""
        if word in self.words or word.startswith(tuple(self.finder.beginnings)):
            return word
        return self._by_plain.get(word)


@cache
def load_lexicon(language: str) -> Lexicon:
    """Load and cache the lexicon of one of the `LANGUAGES`. Call it in a thread: it takes 0.1 seconds."""
    return Lexicon(language)


def _expand_all(phrases: Iterable[str]) -> Iterator[tuple[str, ...]]:
    for phrase in phrases:
        yield from expand(phrase.casefold())


def _write_phrase(words: tuple[str, ...]) -> str:
    return " ".join(words)


def _spell_numbers(language: str) -> dict[str, float]:
    """Return the numbers up to a hundred by their words: {"thirty": 30}."""
    engine, found = RbnfEngine.for_language(language), dict[str, float]()
    for number in range(MAX_NUMBER_WORD, -1, -1):
        for text in engine.format_number(number).text_by_ruleset.values():
            found[" ".join(split_words(text.replace("\u00ad", "")))] = number
    return found
