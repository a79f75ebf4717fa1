"""What a household calls things: words that mean others, and sentences that mean others."""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from sash.errors import InvalidConfig

_ENDS = " \t\r\n.!?。！？؟…"


@dataclass(frozen=True, slots=True)
class Rule:
    """A sentence of this form means another one: in one language, or in every."""

    pattern: re.Pattern[str]
    sentence: str
    language: str | None = None

    def rewrite(self, text: str, language: str) -> str | None:
        """Return what is meant, or None if this is another sentence."""
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

    The first rule that fits the whole sentence, as it was said, gives what is understood instead, and that is
    not rewritten again. If none fits, each synonym is replaced: whole words, in any case, the longest first.
    """

    synonyms: Mapping[str, str] = field(default_factory=dict)
    rules: tuple[Rule, ...] = ()
    _said: re.Pattern[str] | None = field(init=False, repr=False, compare=False)
    _meant: Mapping[str, str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        meant = {_plain(said): wanted for said, wanted in self.synonyms.items()}
        phrases = sorted({*meant, *self.synonyms}, key=len, reverse=True)
        words = (r"\s+".join(map(re.escape, phrase.split())) for phrase in phrases)
        said = re.compile(rf"(?<!\w)(?:{'|'.join(words)})(?!\w)", re.IGNORECASE) if phrases else None
        object.__setattr__(self, "_said", said)
        object.__setattr__(self, "_meant", meant)

    @classmethod
    def load(cls, path: Path | str) -> Self:
        """Read a vocabulary; `InvalidConfig` says what is wrong in which file, and what to do."""
        path = Path(path)
        try:
            data = tomllib.loads(path.read_text("utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            raise _wrong(
                path, f"it cannot be read ({error})", "give the path of a UTF-8 text file"
            ) from error
        except tomllib.TOMLDecodeError as error:
            raise _wrong(path, f"it is not TOML: {error}", "correct it there") from error
        if unknown := sorted(set(data) - {"synonyms", "rules"}):
            raise _wrong(path, f"{unknown[0]!r} is not known", "use [synonyms] and [[rules]]")
        return cls(_synonyms(path, data.get("synonyms", {})), _rules(path, data.get("rules", [])))

    def rewrite(self, text: str, language: str) -> str:
        """Return what is meant by a sentence."""
        whole = text.strip(_ENDS)
        for rule in self.rules:
            if (meant := rule.rewrite(whole, language)) is not None:
                return meant
        if self._said is None:
            return text
        return self._said.sub(lambda found: self._meant.get(_plain(found[0]), found[0]), text)


def _plain(phrase: str) -> str:
    return " ".join(phrase.split()).casefold()


def _synonyms(path: Path, table: Any) -> dict[str, str]:
    if not isinstance(table, dict):
        raise _wrong(path, "'synonyms' is not a table", 'write [synonyms], then lines as: telly = "TV"')
    for said, meant in table.items():
        if not isinstance(meant, str) or not meant.strip() or not said.strip():
            raise _wrong(path, f"synonym {said!r} is no text for a text", 'write it as: "telly" = "TV"')
    return table


def _rules(path: Path, tables: Any) -> tuple[Rule, ...]:
    if not isinstance(tables, list):
        raise _wrong(path, "'rules' is not a list of tables", "write [[rules]] above each rule")
    return tuple(_rule(path, number, table) for number, table in enumerate(tables, 1))


def _rule(path: Path, number: int, table: Any) -> Rule:
    where = f"rule {number}"
    if not isinstance(table, dict):
        raise _wrong(path, f"{where} is not a table", "write [[rules]] above it")
    if unknown := sorted(set(table) - {"pattern", "sentence", "language"}):
        raise _wrong(path, f"{where} has an unknown {unknown[0]!r}", "use pattern, sentence, language")
    for key, value in table.items():
        if not isinstance(value, str) or not value.strip():
            raise _wrong(path, f"{where}: {key} is no text", f'write it as: {key} = "…"')
    if missing := [key for key in ("pattern", "sentence") if key not in table]:
        raise _wrong(path, f"{where} has no {missing[0]}", f'add: {missing[0]} = "…"')
    try:
        pattern = re.compile(table["pattern"], re.IGNORECASE)
    except re.error as error:
        raise _wrong(path, f"{where}: the pattern is no regular expression: {error}", "correct it") from error
    sentence = table["sentence"]
    _check_groups(path, where, pattern, sentence)
    return Rule(pattern, sentence, table.get("language"))


def _check_groups(path: Path, where: str, pattern: re.Pattern[str], sentence: str) -> None:
    """A sentence may only speak of groups that its pattern has, which shows before anybody says anything."""
    alternative = re.compile(rf"(?:{pattern.pattern})|", re.IGNORECASE)
    try:
        if found := alternative.fullmatch(""):
            found.expand(sentence)
    except (re.error, IndexError) as error:
        todo = r"use groups that the pattern has: \1, \g<name>"
        raise _wrong(path, f"{where}: the sentence cannot be filled in: {error}", todo) from error


def _wrong(path: Path, what: str, todo: str) -> InvalidConfig:
    return InvalidConfig(f"{path}: {what}; {todo}")
