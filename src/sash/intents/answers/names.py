"""The names of things in a language: the alias that fits it, with its article and its cases."""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

from sash.intents.sentence.reader import SentenceReader
from sash.intents.words.lexicon import Lexicon, load_lexicon
from sash.intents.words.phrases import Match, PhraseFinder, choose_matches
from sash.intents.words.tokens import remove_accents, split_words
from sash.ports.home import Area, Entity

# Names whose last word is a common noun are written in small letters in English.
_ENGLISH = "en"
# German nouns have capital letters.
_GERMAN = "de"
# These languages write compounds as one word: "Küchenlicht".
_COMPOUNDING = ("de", "nl")
# Other languages of the same home. A word that both know, such as "Bad", may belong to the other one.
_NEIGHBOURS = {"de": ("en",), "nl": ("en", "de"), "fr": ("en",), "es": ("en",), "it": ("en",)}
# The tag of a translated name: "names.plafondlamp".
_NAMES = "names"
# Phrases of a lexicon have a blank in place of an apostrophe: "porte d entrée".
_APOSTROPHE = re.compile(r"\b([dl]) (?=\w)")
_VOWELS = ("a", "e", "i", "o", "u")


class Name(str):
    """The name of a thing in a sentence. A sentence takes its cases: `{name.dative}`, `{place.inside}`.

    `inside` and `of` have a preposition: "in the kitchen", "im Bad", "del baño". `is_feminine` is for states
    that agree with it, and `end` ends a participle: "la porta è stat{name.end} apert{name.end}". `bare` has
    no article.
    """

    bare: str
    accusative: str
    dative: str
    inside: str
    of: str
    is_plural: bool
    is_feminine: bool
    end: str = ""

    def __new__(
        cls,
        text: str,
        *,
        bare: str = "",
        accusative: str = "",
        dative: str = "",
        inside: str = "",
        of: str = "",
        is_plural: bool = False,
        is_feminine: bool = False,
    ) -> "Name":
        name = super().__new__(cls, text)
        name.bare = bare or text
        name.accusative = accusative or text
        name.dative = dative or text
        name.inside = inside or text
        name.of = of or text
        name.is_plural = is_plural
        name.is_feminine = is_feminine
        return name

    def add_place(self, place: str) -> "Name":
        """Return this name with the words that say where it is or belongs: "de lamp in de keuken"."""
        cases = ("bare", "accusative", "dative", "inside", "of")
        forms = {case: f"{getattr(self, case)} {place}" for case in cases}
        gender = {"is_plural": self.is_plural, "is_feminine": self.is_feminine}
        return Name(f"{self} {place}", **forms, **gender)  # type: ignore[arg-type]


class Namer:
    """Names things in one language. `forms` has its articles by noun, and their cases."""

    def __init__(self, lexicon: Lexicon, forms: Mapping[str, Any]) -> None:
        self._lexicon = lexicon
        self._articles: Mapping[str, str] = forms.get("articles", {})
        self._plurals: frozenset[str] = frozenset(forms.get("plural_nouns", ()))
        self._feminine: frozenset[str] = frozenset(forms.get("feminine_articles", ()))
        self._feminine_nouns: frozenset[str] = frozenset(forms.get("feminine_nouns", ()))
        self._elided: Mapping[str, str] = forms.get("elided", {})
        self._is_noun_first = bool(forms.get("noun_is_first"))
        self._cases: Mapping[str, Mapping[str, str]] = forms.get("cases", {})
        self._translations = PhraseFinder(
            (f"{_NAMES}.{translation}", phrase) for phrase, translation in forms.get("names", {}).items()
        )

    def name(self, thing: Entity | Area) -> Name:
        """Return the name of a thing in the middle of a sentence: "the kitchen light", "Robby"."""
        if isinstance(thing, Entity) and thing.domain == "person":
            return self.name_bare(thing.name)
        return self.name_text(thing.name, thing.aliases, is_place=isinstance(thing, Area))

    def name_text(self, text: str, aliases: Sequence[str] = (), *, is_place: bool = False) -> Name:
        """Return a name with its article: an alias, if the name is in English, or else its translation."""
        if self._lexicon.language == _ENGLISH or not self._is_english(text):
            return self.add_article(text, is_place=is_place)
        fitting = [
            alias
            for alias in aliases
            if self._count_nouns(alias) and not self._is_english(alias) and self._begins_well(alias)
        ]
        own = next(filter(self._is_own, fitting), "")
        translated = None if own else self._translate(text, is_place=is_place)
        return translated or self.add_article(own or next(iter(fitting), text), is_place=is_place)

    def name_bare(self, text: str) -> Name:
        """Return a name without an article: "Anna", "d'Anna"."""
        cases: dict[str, Any] = {
            case: self._join(forms.get("", ""), text) for case, forms in self._cases.items()
        }
        return Name(text, **cases)

    def name_noun(self, text: str) -> Name:
        """Return a common noun: "de température", "d'humidité". A German accusative has its article."""
        name = self.name_bare(text)
        noun = self._end_noun(text.lower())
        article = self._articles.get(noun, "")
        if article and "accusative" in self._cases:
            name.accusative = f"{self._cases['accusative'].get(article, article)} {text}"
        if article.endswith("'") and "of" in self._cases:
            before = self._cases["of"].get("", "")
            name.of = f"{self._elided.get(before, before + ' ')}{text}"
        return name

    def add_article(self, text: str, *, is_place: bool = False, is_noun: bool = False) -> Name:
        """Return a name with the article of its last word, if all its words are common nouns.

        `is_noun` is for a name that is known to be a common noun.
        """
        words = split_words(text)
        if self._lexicon.language == _ENGLISH:
            article, is_plural = self._choose_english(words)
            text = " ".join(map(self._lower, text.split())) if article else text
            noun = ""
        else:
            is_english = self._is_noun_first and self._is_english(text)
            noun = "" if is_english else self._choose_noun(words, is_place=is_place, is_noun=is_noun)
            article, is_plural = self._articles.get(noun, ""), noun in self._plurals
            if article and self._lexicon.language != _GERMAN and not text[:2].isupper():
                text = text[:1].lower() + text[1:]
        forms = {
            case: self._join((articles.get(noun) if noun else "") or articles.get(article, article), text)
            for case, articles in self._cases.items()
        }
        is_feminine = article in self._feminine or noun in self._feminine_nouns
        gender = {"is_plural": is_plural, "is_feminine": is_feminine}
        return Name(self._join(article, text), bare=text, **forms, **gender)  # type: ignore[arg-type]

    def is_feminine(self, text: str) -> bool:
        """Return whether the first noun of a text is feminine: "5 lumières"."""
        nouns = (word for word in split_words(text) if word in self._articles)
        noun = next(nouns, "")
        return noun in self._feminine_nouns or self._articles.get(noun) in self._feminine

    def _join(self, article: str, text: str) -> str:
        """Return a name after its article or preposition. Some lose their vowel: "l'ampoule"."""
        if remove_accents(text[:1].lower()) in _VOWELS:
            article = self._elided.get(article, article)
        return f"{article}{text}" if article.endswith("'") else f"{article} {text}".strip()

    def _translate(self, name: str, *, is_place: bool = False) -> Name | None:
        """Return an English name of common nouns in this language; None if a word has no translation.

        "Kitchen ceiling light" is "la luz del techo de la cocina" and "de plafondlamp in de keuken".
        """
        words = split_words(name)
        found = self._find_english(words)
        found = choose_matches(match for match in found if match.kind == "room" or not is_place)
        covered = {place for match in found for place in match.places}
        parts = [(match.kind == "room", self._translate_noun(match, words)) for match in reversed(found)]
        if not parts or len(covered) < len(words) or not all(noun for _, noun in parts):
            return None
        (_, noun), *others = parts
        if self._is_noun_first:
            text = " ".join([noun, *(self.add_article(other).of for _, other in others)])
            return self.add_article(_APOSTROPHE.sub(r"\1'", text), is_place=is_place)
        named = self.add_article(self._capitalize(noun), is_place=is_place, is_noun=True)
        for is_room, other in others:
            place = self.add_article(self._capitalize(other), is_place=is_room, is_noun=True)
            named = named.add_place(place.inside if is_room else place.of)
        return named

    def _find_english(self, words: Sequence[str]) -> list[Match]:
        """Return the English nouns in a name. Those with a translation of their own come first."""
        return [*self._translations.find_all(words), *load_lexicon(_ENGLISH).nouns.find_all(words)]

    def _translate_noun(self, match: Match, words: Sequence[str]) -> str:
        """Return the translation of an English noun: the first phrase with an article; empty without one."""
        if match.kind == _NAMES:
            return match.value
        is_plural = words[match.end - 1].endswith("s")
        phrases = self._lexicon.noun_phrases.get(match.tag, ())
        known = [phrase for phrase in phrases if phrase.split()[0] in self._articles]
        if not self._is_noun_first:
            known = [p for p in phrases if " " not in p and any(map(p.endswith, self._articles))]
        return next((each for each in known if (each.split()[0] in self._plurals) == is_plural), "")

    def _capitalize(self, noun: str) -> str:
        return noun[:1].upper() + noun[1:] if self._lexicon.language == _GERMAN else noun

    def _is_own(self, alias: str) -> bool:
        """Return whether the words of an alias belong to this language, and to no neighbour as well."""
        count, words = self._count_nouns(alias), split_words(alias)
        return all(
            _count_nouns(load_lexicon(other), words) < count
            for other in _NEIGHBOURS.get(self._lexicon.language, ())
        )

    def _is_english(self, text: str) -> bool:
        english = {place for match in self._find_english(split_words(text)) for place in match.places}
        if self._is_noun_first and not self._begins_well(text):
            return bool(english) and len(english) >= self._count_nouns(text)  # "Garage" is a word of both.
        return len(english) > self._count_nouns(text)

    def _begins_well(self, text: str) -> bool:
        """Return whether a text may be a name of the language: it begins with a noun that has an article."""
        return not self._is_noun_first or next(iter(split_words(text)), "") in self._articles

    def _count_nouns(self, text: str) -> int:
        return _count_nouns(self._lexicon, split_words(text))

    def _choose_noun(self, words: Sequence[str], *, is_place: bool, is_noun: bool) -> str:
        """Return the noun that a name begins or ends in; empty if it may be no common noun."""
        if self._is_noun_first or not words:
            return next(iter(words), "")
        if is_noun:
            return self._end_noun(words[-1])
        if self._count_nouns(" ".join(words)) < len(words):
            return ""
        is_room_last = any(
            match.kind == "room" and match.end == len(words) for match in self._lexicon.nouns.find_all(words)
        )
        if is_room_last and not is_place and len(words) > 1:
            return ""  # "Deckenlampe Küche" ends in the place of the thing.
        return self._end_noun(words[-1])

    def _end_noun(self, word: str) -> str:
        """Return the longest noun with an article that a word ends in; empty without one."""
        return max((noun for noun in self._articles if word.endswith(noun)), key=len, default="")

    def _choose_english(self, words: Sequence[str]) -> tuple[str, bool]:
        is_noun = any(match.end == len(words) for match in self._lexicon.nouns.find_all(words))
        return ("the", words[-1].endswith("s")) if words and is_noun else ("", False)

    def _lower(self, word: str) -> str:
        is_common = all(each in self._lexicon.words for each in split_words(word))
        return word if (word.isupper() and len(word) > 1) or not is_common else word.lower()


def _count_nouns(lexicon: Lexicon, words: Sequence[str]) -> int:
    """Return how many words of a name are nouns of a language, or compounds of them."""
    known = {place for match in lexicon.nouns.find_all(words) for place in match.places}
    if lexicon.language in _COMPOUNDING:
        split = _choose_reader(lexicon.language).split_compound
        known |= {place for place, word in enumerate(words) if split(word) is not None}
    return len(known)


@cache
def _choose_reader(language: str) -> SentenceReader:
    return SentenceReader(load_lexicon(language), None)


def join_names(items: Iterable[str], conjunction: str, *, is_sum: bool) -> Name:
    """Return a list as a person says it, in all cases: "the lamp, the fan and the TV"."""
    names = [item if isinstance(item, Name) else Name(item) for item in items]

    def join(texts: Sequence[str]) -> str:
        return "".join(texts) if len(texts) < 2 else f"{', '.join(texts[:-1])} {conjunction} {texts[-1]}"

    return Name(
        join(names),
        accusative=join([name.accusative for name in names]),
        dative=join([name.dative for name in names]),
        inside=join([name.inside for name in names]),
        of=join([name.of for name in names]),
        is_plural=names[0].is_plural if len(names) == 1 else is_sum,
        is_feminine=bool(names) and all(name.is_feminine for name in names),
    )
