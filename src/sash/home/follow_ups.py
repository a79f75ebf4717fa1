"""Next steps that are obvious after the tools of a turn, as sentences that the user can send."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from sash.home.answer_sources import Result
from sash.ports.home import UNAVAILABLE
from sash.values.citations import MAX_FOLLOW_UPS, Citation, EntityCitation, shorten
from sash.values.continuations import Action

_WORD = re.compile(r"\w+")


class _Sentences(NamedTuple):
    """The sentences of one language. They are understood without a model, too."""

    batteries: str
    logbook: str
    unavailable: str
    diagnosis: str
    undo: str
    permission: str


_SENTENCES = {
    "en": _Sentences(
        "Which batteries are low?",
        "What is in the logbook about the {} this week?",
        "Which devices are unavailable?",
        "What is wrong with the {}?",
        "Undo that",
        "How do I allow you to control devices?",
    ),
    "de": _Sentences(
        "Welche Batterien sind schwach?",
        "Was steht im Logbuch über {}?",
        "Welche Geräte sind nicht verfügbar?",
        "Was ist los mit {}?",
        "Mach das rückgängig",
        "Wie erlaube ich dir, Geräte zu steuern?",
    ),
}


def suggest_follow_ups(
    language: str,
    results: Sequence[tuple[str, Result]],
    actions: Sequence[Action],
    citations: Sequence[Citation],
    denials: Iterable[str] = (),
    asked: str = "",
) -> tuple[str, ...]:
    """Return the next steps after a turn in a language such as "de" or "de-AT"; none in unknown languages.

    `asked` is the message of the user, which is no next step. `results` are the results of tools by name.
    `denials` are the reasons of actions that were refused.
    """
    sentences = _SENTENCES.get(language.replace("_", "-").partition("-")[0].lower())
    if sentences is None:
        return ()
    found = [
        *_after_actions(sentences, actions, denials),
        *_after_diagnoses(sentences, results),
        *_after_reads(sentences, citations, {result.get("entity_id") for _, result in results}, asked),
    ]
    return tuple(dict.fromkeys(shorten(sentence) for sentence in found))[:MAX_FOLLOW_UPS]


def _after_actions(sentences: _Sentences, actions: Sequence[Action], denials: Iterable[str]) -> Iterator[str]:
    if any("allow_actuation" in reason or "allowlisted_services" in reason for reason in denials):
        yield sentences.permission
    if any(a.outcome == "done" and a.verified and a.before and a.undoes is None for a in actions):
        yield sentences.undo


def _after_diagnoses(sentences: _Sentences, results: Iterable[tuple[str, Result]]) -> Iterator[str]:
    for tool, result in results:
        if tool != "diagnose_entity" or result.get("status") in (None, "healthy"):
            continue
        causes = str(result.get("root_causes")) + str(result.get("recommendations"))
        if "battery" in causes:
            yield sentences.batteries
        yield sentences.logbook.format(result.get("name"))
        if result.get("status") == UNAVAILABLE:
            yield sentences.unavailable


def _after_reads(
    sentences: _Sentences, citations: Sequence[Citation], diagnosed: set[object], asked: str
) -> Iterator[str]:
    """Yield the diagnosis of the first cited entity that is unavailable, unless it was diagnosed just now.

    After a local answer to the question for it, the next step is its logbook.
    """
    for citation in citations:
        if isinstance(citation, EntityCitation) and citation.state == UNAVAILABLE:
            diagnosis = sentences.diagnosis.format(citation.name)
            if _split(diagnosis) <= _split(asked):
                yield sentences.logbook.format(citation.name)
                yield sentences.unavailable
            elif citation.entity_id not in diagnosed:
                yield diagnosis
            return


def _split(text: str) -> set[str]:
    return set(_WORD.findall(text.casefold()))
