"""The user's own vocabulary: synonyms for words, and rules for whole sentences."""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn, Self

from sash.errors import InvalidConfig

_END_CHARACTERS = " \t\r\n.!?。！？؟…"


@dataclass(frozen=True, slots=True)
class Rule:
    """Replaces sentences that match a pattern, in one language or in all languages."""

    pattern: re.Pattern[str]
    sentence: str
    language: str | None = None

    def rewrite(self, text: str, language: str) -> str | None:
        """Return the new sentence; None if the rule does not match the whole text or the language."""
        if (
            self.language
            and language.casefold().partition("-")[0] != self.language.casefold().partition("-")[0]
        ):
            return None
        found = self.pattern.fullmatch(text)
        return found.expand(self.sentence).strip() if found else None


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Rewrites a sentence before it is understood.

    The first rule that matches the whole sentence replaces it, and no synonyms apply then. If no rule
    matches, all synonyms are replaced: whole words, in any case, longest first.
    """

    synonyms: Mapping[str, str] = field(default_factory=dict)
    rules: tuple[Rule, ...] = ()
    _pattern: re.Pattern[str] | None = field(init=False, repr=False, compare=False)
    _replacements: Mapping[str, str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        replacements = {_normalize(phrase): meaning for phrase, meaning in self.synonyms.items()}
        phrases = sorted({*replacements, *self.synonyms}, key=len, reverse=True)
        words = (r"\s+".join(map(re.escape, phrase.split())) for phrase in phrases)
        pattern = re.compile(rf"(?<!\w)(?:{'|'.join(words)})(?!\w)", re.IGNORECASE) if phrases else None
        object.__setattr__(self, "_pattern", pattern)
        object.__setattr__(self, "_replacements", replacements)

    @classmethod
    def load(cls, path: Path | str) -> Self:
        """Read a vocabulary file. Raise `InvalidConfig` with the file, the problem and the remedy."""
        path = Path(path)
        try:
            data = tomllib.loads(path.read_text("utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            _raise_invalid(path, f"it cannot be read ({error})", "give the path of a UTF-8 text file", error)
        except tomllib.TOMLDecodeError as error:
            _raise_invalid(path, f"it is not TOML: {error}", "correct it there", error)
        if unknown := sorted(set(data) - {"synonyms", "rules"}):
            _raise_invalid(path, f"{unknown[0]!r} is not known", "use [synonyms] and [[rules]]")
        return cls(_read_synonyms(path, data.get("synonyms", {})), _read_rules(path, data.get("rules", [])))

    def rewrite(self, text: str, language: str) -> str:
        """Return the sentence with the rules and synonyms applied."""
        whole = text.strip(_END_CHARACTERS)
        for rule in self.rules:
            if (rewritten := rule.rewrite(whole, language)) is not None:
                return rewritten
        if self._pattern is None:
            return text
        return self._pattern.sub(lambda found: self._replacements.get(_normalize(found[0]), found[0]), text)


def _normalize(phrase: str) -> str:
    return " ".join(phrase.split()).casefold()


def _read_synonyms(path: Path, table: Any) -> dict[str, str]:
    if not isinstance(table, dict):
        _raise_invalid(path, "'synonyms' is not a table", 'write [synonyms], then lines as: telly = "TV"')
    for phrase, meaning in table.items():
        if not isinstance(meaning, str) or not meaning.strip() or not phrase.strip():
            _raise_invalid(
                path,
                f"synonym {phrase!r} is not a text, or its replacement is not one",
                'write it as: "telly" = "TV"',
            )
    return table


def _read_rules(path: Path, tables: Any) -> tuple[Rule, ...]:
    if not isinstance(tables, list):
        _raise_invalid(path, "'rules' is not a list of tables", "write [[rules]] above each rule")
    return tuple(_read_rule(path, number, table) for number, table in enumerate(tables, 1))


def _read_rule(path: Path, number: int, table: Any) -> Rule:
    where = f"rule {number}"
    if not isinstance(table, dict):
        _raise_invalid(path, f"{where} is not a table", "write [[rules]] above it")
    if unknown := sorted(set(table) - {"pattern", "sentence", "language"}):
        _raise_invalid(path, f"{where} has an unknown {unknown[0]!r}", "use pattern, sentence, language")
    for key, value in table.items():
        if not isinstance(value, str) or not value.strip():
            _raise_invalid(path, f"{where}: {key} is not a text", f'write it as: {key} = "…"')
    if missing := [key for key in ("pattern", "sentence") if key not in table]:
        _raise_invalid(path, f"{where} has no {missing[0]}", f'add: {missing[0]} = "…"')
    try:
        pattern = re.compile(table["pattern"], re.IGNORECASE)
    except re.error as error:
        _raise_invalid(
            path, f"{where}: the pattern is not a regular expression: {error}", "correct it", error
        )
    sentence = table["sentence"]
    _check_groups(path, where, pattern, sentence)
    return Rule(pattern, sentence, table.get("language"))


def _check_groups(path: Path, where: str, pattern: re.Pattern[str], sentence: str) -> None:
    """Raise `InvalidConfig` if the sentence refers to a group that its pattern does not have."""
    alternative = re.compile(rf"(?:{pattern.pattern})|", re.IGNORECASE)
    try:
        if found := alternative.fullmatch(""):
            found.expand(sentence)
    except (re.error, IndexError) as error:
        remedy = r"use groups that the pattern has: \1, \g<name>"
        _raise_invalid(path, f"{where}: the sentence cannot be filled in: {error}", remedy, error)


def _raise_invalid(path: Path, problem: str, remedy: str, cause: Exception | None = None) -> NoReturn:
    raise InvalidConfig(f"{path}: {problem}; {remedy}") from cause
