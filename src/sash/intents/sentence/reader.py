"""Reads a sentence into clauses, with the words of a language and of a home."""

from collections.abc import Iterator, Sequence

from sash.intents.home_words import HomeWords
from sash.intents.kinds import COVERING_KEYS
from sash.intents.sentence.clause import Clause, Word
from sash.intents.sentence.clause_reader import ClauseReader
from sash.intents.sentence.phrase_choice import SETTING
from sash.intents.sentence.question_tag import write_plain_question
from sash.intents.sentence.sentence import Sentence
from sash.intents.words.lexicon import NOUNS, Lexicon
from sash.intents.words.phrases import Match, make_match
from sash.intents.words.spelling import Spelling
from sash.intents.words.tokens import Token, remove_accents, split_tokens, write_umlauts
from sash.ports.home import ENTITY_ID_PATTERN

MIN_PART_CHARS = 3
MIN_ADVERB_CHARS = 6
_LINKS = ("", "s", "n", "en", "es")
# Languages that write compounds as one word.
_COMPOUNDING = ("de", "nl")


class SentenceReader:
    """Reads the sentences of one language about one home."""

    def __init__(self, lexicon: Lexicon, home: HomeWords | None) -> None:
        self.lexicon = lexicon
        self._home = home
        home_words = home.words if home else set()
        self._known = {*lexicon.words, *home_words}
        self._spelling = Spelling(self._known)
        # Several parts read the same sentence one after the other.
        self._last_read: tuple[Sentence | None, tuple[Clause, ...]] = None, ()

    def read(self, text: str, *, corrects: bool = False) -> Sentence:
        """Return the tokens and all phrases of a sentence. `corrects` replaces words with typing mistakes."""
        text = write_plain_question(text, self.lexicon)
        tokens: list[Token] = []
        words: list[str] = []
        is_corrected = False
        split = list(self._split(text))
        for n, token in enumerate(split):
            is_added = n == len(split) - 1 and n > 1 and split[n - 1].word == ","
            for word in self._rewrite(token.word):
                known = self._find_known(word)
                if known is None and corrects and (known := self._correct(word, is_added=is_added)):
                    is_corrected = True
                written = self.lexicon.rewrites.get(known or word, (known or word,))
                tokens.extend([token] * len(written))
                words.extend(written)
        if corrects:
            tokens, words, joined = self._join_split_names(tokens, words)
            is_corrected = is_corrected or joined
        found = [m for m in self.lexicon.finder.find_all(words) if not self._lacks_number(m, words)]
        if relative := self._find_relative(words, found):
            first, last = tokens[relative.start], tokens[relative.end - 1]
            return self.read(
                f"{text[: first.start].rstrip(' ,')} {text[last.end :].lstrip()}", corrects=corrects
            )
        found += self._find_which(words, found)
        found += self._find_adverbs(words)
        matches = [*found, *self._find_around_inserts(words), *self._find_names(words)]
        return Sentence(text, tuple(tokens), tuple(words), tuple(matches), is_corrected)

    def measure_known(self, text: str) -> float:
        """Return the share of the words of a text that the language or the home knows, from 0 to 1."""
        words = _list_words(text)
        return sum(map(self._is_known, words)) / len(words) if words else 0.0

    def measure_likeness(self, text: str) -> float:
        """Return how much a text is in this language, from 0 to 1.

        A word that only the home knows counts half, because people say the names of a home in every language.
        """
        words = _list_words(text)
        known = [word for word in words if self._is_known(word)]
        named = [word for word in known if self._home is not None and word in self._home.words]
        only_named = sum(self.lexicon.find_word(word) is None for word in named)
        return (len(known) - only_named / 2) / len(words) if words else 0.0

    def find_bounds(self, sentence: Sentence) -> list[tuple[int, int]]:
        """Return the first place and the place after the last one of each part of a sentence."""
        return ClauseReader(self, sentence).find_bounds(0, len(sentence.words))

    def split(self, sentence: Sentence) -> list[str]:
        """Return the parts of a sentence between words such as "and"."""
        bounds = self.find_bounds(sentence)
        return [sentence.cut(start, end) for start, end in bounds if start < end]

    def read_clause(self, sentence: Sentence, start: int, end: int) -> Clause:
        """Return the words from `start` up to `end` as one clause."""
        return ClauseReader(self, sentence).read_part(start, end)

    def read_clauses_between(self, sentence: Sentence, start: int, end: int) -> list[Clause]:
        """Return the clauses of the words from `start` up to `end`."""
        return ClauseReader(self, sentence).read(start, end)

    def read_clauses(self, sentence: Sentence) -> list[Clause]:
        """Return the clauses of a sentence, each with what it says."""
        last, clauses = self._last_read
        if last is not sentence:
            clauses = tuple(self.read_clauses_between(sentence, 0, len(sentence.words)))
            self._last_read = sentence, clauses
        return list(clauses)

    def split_compound(self, word: str) -> tuple[str, str] | None:
        """Return the two known words of a compound: "badthermostat" is "bad" and "thermostat"."""
        for end in range(len(word) - MIN_PART_CHARS, MIN_PART_CHARS - 1, -1):
            right = self._find_noun(word[end:])
            if right is None:
                continue
            for link in _LINKS:
                left = word[:end].removesuffix(link)
                if len(left) >= MIN_PART_CHARS and (link == "" or word[:end].endswith(link)):
                    for form in (left, f"{left}e"):
                        if found := self._find_noun(form):
                            return found, right
        return None

    def make_word(self, text: str, word: str, match: Match | None) -> list[Word]:
        """Return the description of one token or phrase. A compound has two parts."""
        if match is not None:
            keys = {match.tag, remove_accents(word)}
            if match.tag in COVERING_KEYS:
                keys.add("kind.blind")  # "Curtains" are blinds, and one kind of them.
            return [Word(text, frozenset(keys), is_plural=self._is_plural(word))]
        if self._home is not None and word in self._home.words:
            return [Word(text, frozenset({remove_accents(word)}), is_plural=self._is_plural(word))]
        if self.lexicon.language in _COMPOUNDING and (parts := self.split_compound(word)):
            return [self._make_part(text, part) for part in parts]
        is_known = word in self._known
        return [Word(text, frozenset({remove_accents(word)}), is_known=is_known and not word.isalpha())]

    def make_name(self, text: str, match: Match) -> Word:
        """Return the description of a full name of the home."""
        assert self._home is not None
        name = self._home.names[tuple(match.value.split())]
        plain = match.value.split()
        keys = name.keys | ({plain[0]} if len(plain) == 1 else set())
        if len(plain) == 1 and name.entity_ids:
            # A sensor that is called "Light" cannot be switched, so "light" means the lights then.
            keys |= {m.tag for m in self.lexicon.nouns.find_all(plain) if m.kind == "kind"}
        return Word(text, frozenset(keys), name.entity_ids, self._is_plural(text.casefold().split()[-1]))

    def is_name_of_home(self, words: tuple[str, ...]) -> bool:
        return self._home is not None and words in self._home.names

    def is_label_of_home(self, words: tuple[str, ...]) -> bool:
        """Return whether words are the name of a label."""
        name = self._home.names.get(words) if self._home is not None else None
        return name is not None and any(key.startswith("label:") for key in name.keys)

    def _make_part(self, text: str, part: str) -> Word:
        tags = {match.tag for match in self.lexicon.nouns.find_all([part])}
        keys = {remove_accents(part), *tags}
        if not tags.isdisjoint(COVERING_KEYS):
            keys.add("kind.blind")
        if self._home is not None and (name := self._home.names.get((remove_accents(part),))):
            keys |= name.keys
        return Word(text, frozenset(keys), is_plural=self._is_plural(part))

    def _lacks_number(self, match: Match, words: Sequence[str]) -> bool:
        """Return whether a time that only follows a number follows none: "am" in "I am sure"."""
        if match.kind != "time" or words[match.start] not in self.lexicon.after_number:
            return False
        before = words[match.start - 1] if match.start else ""
        return not (before[:1].isdigit() or before in self.lexicon.numbers or before == "clock")

    def _find_relative(self, words: Sequence[str], found: Sequence[Match]) -> Match | None:
        """Return words such as "that are on" beside a command; None in a question."""
        relative = next(iter(self.lexicon.relatives.find_all(words)), None)
        if relative is None or any(m.kind in ("ask", "condition") and m.end <= relative.start for m in found):
            return None
        inside = set(relative.places)
        acts = (m for m in found if m.kind == "do" and m.value not in SETTING)
        return relative if any(inside.isdisjoint(match.places) for match in acts) else None

    def _find_adverbs(self, words: Sequence[str]) -> list[Match]:
        """Return unknown words that only say how something is done: "immediately"."""
        endings = self.lexicon.adverb_endings
        return [
            make_match("soft", [place])
            for place, word in enumerate(words)
            if len(word) >= MIN_ADVERB_CHARS and word.endswith(endings) and self._find_known(word) is None
        ]

    def _find_which(self, words: Sequence[str], found: Sequence[Match]) -> list[Match]:
        """Return the word that asks "which" only at the start: "che luci sono accese?"."""
        fillers = {place for m in found if m.kind in ("filler", "join") for place in m.places}
        start = next((n for n, word in enumerate(words) if word in self.lexicon.which_at_start), None)
        if start is None or not fillers.issuperset(n for n in range(start) if words[n][0].isalnum()):
            return []
        is_kind = any(m.kind == "kind" and m.start == start + 1 for m in found)
        return [make_match("ask.which", [start])] if is_kind else []

    def _split(self, text: str) -> Iterator[Token]:
        """Yield the tokens of a sentence. An entity id of the home is one token."""
        start = 0
        for found in ENTITY_ID_PATTERN.finditer(text.lower()) if self._home else ():
            if (found[0],) in self._home.names:  # type: ignore[union-attr]
                yield from split_tokens(text[start : found.start()], start)
                yield Token(found[0], found.start(), found.end())
                start = found.end()
        yield from split_tokens(text[start:], start)

    def _rewrite(self, word: str) -> tuple[str, ...]:
        """Return the words that replace a word: "samstagabend" is "samstag" and "abend"."""
        if (words := self.lexicon.rewrites.get(word)) is not None:
            return words
        if self.lexicon.language in _COMPOUNDING and word not in self._known:
            for end in range(MIN_PART_CHARS, len(word) - MIN_PART_CHARS + 1):
                parts = (word[:end], word[end:])
                if all(self.lexicon.times.find_all([part]) for part in parts):
                    return parts
        is_name = self._home is not None and word in self._home.words
        return (word,) if is_name else self.lexicon.split_pronouns(word)

    def _correct(self, word: str, *, is_added: bool) -> str | None:
        """Return the word that was meant. A single word after the rest never becomes a thing or an act."""
        known = self._spelling.correct(word)
        if known is None or not is_added:
            return known
        is_thing = self._home is not None and known in self._home.words
        kinds = {match.kind for match in self.lexicon.finder.find_all([known])}
        return None if is_thing or kinds & {"do", *NOUNS} else known

    def _find_known(self, word: str) -> str | None:
        """Return a word as the lexicon or the home writes it; None if neither knows it."""
        if not word.isalpha() or (self._home is not None and word in self._home.words):
            return word
        if known := self.lexicon.find_word(word):
            return known
        if self.lexicon.language not in _COMPOUNDING:
            return None
        if self.split_compound(word):
            return word
        umlauts = write_umlauts(word)
        return self._find_known(umlauts) if umlauts != word else None

    def _is_known(self, word: str) -> bool:
        """Return whether a word is known, maybe as a verb with its pronouns: "spegnile"."""
        return self._find_known(word) is not None or len(self.lexicon.split_pronouns(word)) > 1

    def _find_noun(self, word: str) -> str | None:
        if self.lexicon.nouns.find_all([word]):
            return word
        if self._home is not None and (remove_accents(word),) in self._home.names:
            return word
        return None

    def _is_plural(self, word: str) -> bool:
        if self.lexicon.language == "en":
            return word.endswith("s") and not word.endswith("ss")
        return not self.lexicon.plurals.isdisjoint(word.split())

    def _join_split_names(self, tokens: list[Token], words: list[str]) -> tuple[list[Token], list[str], bool]:
        """Join two words that are one word of a name: "bed side" is "bedside"."""
        home = self._home.words if self._home else set()
        for n in range(len(words) - 1):
            joined = words[n] + words[n + 1]
            if joined in home and words[n].isalpha():
                token = Token(joined, tokens[n].start, tokens[n + 1].end)
                return [*tokens[:n], token, *tokens[n + 2 :]], [*words[:n], joined, *words[n + 2 :]], True
        return tokens, words, False

    def _find_around_inserts(self, words: Sequence[str]) -> list[Match]:
        """Return the phrases of a conversation that words such as "please" interrupt.

        "Nimm das bitte wieder zurück" has the phrase "nimm das zurück". The match has all places between.
        """
        commas = {place for place, word in enumerate(words) if word == ","}
        inserts = {place for match in self.lexicon.inserts.find_all(words) for place in match.places}
        found = []
        # A phrase may also have a word in it that is an insert in others: "weißt du noch, was …".
        for left_out in filter(None, (commas, commas | inserts if inserts else None)):
            kept = [place for place in range(len(words)) if place not in left_out]
            for match in self.lexicon.conversation.find_all([words[place] for place in kept]):
                places = [kept[place] for place in match.places]
                inside = [place for place in left_out if places[0] < place < places[-1]]
                if inside:
                    found.append(make_match(match.tag, tuple(sorted({*places, *inside}))))
        return found

    def _find_names(self, words: Sequence[str]) -> list[Match]:
        """Return the full names of the home in a sentence."""
        if self._home is None:
            return []
        plain = [remove_accents(word) for word in words]
        longest = min(self._home.longest_name, len(plain))
        return [
            make_match(f"name.{' '.join(plain[start : start + length])}", tuple(range(start, start + length)))
            for start in range(len(plain))
            for length in range(1, min(longest, len(plain) - start) + 1)
            if tuple(plain[start : start + length]) in self._home.names
        ]


def _list_words(text: str) -> list[str]:
    """Return the words of a text without numbers and signs."""
    return [token.word for token in split_tokens(text) if token.word[0].isalpha()]
