"""The sources of an answer and the next steps after it, found by code in the steps of the turn."""

from collections.abc import Collection
from dataclasses import dataclass, replace

from sash.engine.redaction import redact
from sash.engine.turn.progress import Progress
from sash.home.answer_sources import (
    Result,
    cite_result,
    cite_state,
    find_used,
    find_used_turns,
    parse_result,
    read_recalled,
    split_recalled,
)
from sash.home.follow_ups import suggest_follow_ups
from sash.home.index import HomeIndex
from sash.ports.model import Answer
from sash.values.citations import MAX_CITATIONS, Citation, EntityCitation, TurnCitation, shorten

# If the answer mentions no source, as "Yes" does, this many of the last ones are cited.
MAX_UNMENTIONED = 3


@dataclass(frozen=True, slots=True)
class AnswerNotes:
    """The citations and the follow-ups of a response."""

    citations: tuple[Citation, ...] = ()
    follow_ups: tuple[str, ...] = ()


def write_notes(
    answer: Answer, progress: Progress, language: str | None, index: HomeIndex | None, asked: str = ""
) -> AnswerNotes:
    """Return the notes for the answer that ends a turn. `index` is None without a home.

    `asked` is the message of the user.

    The follow-ups are in the user's `language`, or in that of the home if it is None.
    """
    results = [
        (message["name"], str(message["content"]))
        for message in progress.messages
        if message["role"] == "tool"
    ]
    read = [*answer.citations, *(c for name, content in results for c in cite_result(name, content))]
    looked_up = {
        turn: text for name, content in results for turn, text in read_recalled(name, content).items()
    }
    recalled = split_recalled(progress.recalled or "", progress.recalled_turns)
    shown = find_used_turns(recalled, answer.content, asked)
    unused = looked_up.keys() - set(find_used_turns(looked_up, answer.content, asked))
    chosen = [*shown, *_choose([_add_time(each, index) for each in read], answer, unused)][:MAX_CITATIONS]
    parsed: list[tuple[str, Result]] = [(name, parse_result(content)) for name, content in results]
    denied = {action.call_id for action in progress.actions if action.outcome == "denied"}
    denials = [
        str(m["content"]) for m in progress.messages if m["role"] == "tool" and m["tool_call_id"] in denied
    ]
    language = language or (index.language if index is not None else "en")
    follow_ups = suggest_follow_ups(language, parsed, progress.actions, chosen, denials, asked)
    return AnswerNotes(tuple(map(_redact, chosen)), tuple(map(redact, follow_ups)))


def _choose(read: list[Citation], answer: Answer, unused: Collection[Citation]) -> list[Citation]:
    """Return the sources that the answer mentions, or else the last few that were read.

    `unused` are turns that were looked up, and that the answer does not use.

    If many entities were read, as by a search, none of them is a source of an answer that mentions none.
    """
    latest = {_key(citation): citation for citation in read}
    found = [citation for citation in latest.values() if citation not in unused]
    used = find_used(found, answer.content)
    if sum(isinstance(citation, EntityCitation) for citation in found) > MAX_UNMENTIONED:
        found = [citation for citation in found if not isinstance(citation, EntityCitation)]
    return used or found[-MAX_UNMENTIONED:]


def _key(citation: Citation) -> object:
    """Return the same key for two reads of one entity."""
    return citation.entity_id if isinstance(citation, EntityCitation) else citation


def _add_time(citation: Citation, index: HomeIndex | None) -> Citation:
    """Return a citation of a state with its time, if the entity still has the state."""
    if index is None or not isinstance(citation, EntityCitation) or citation.at is not None:
        return citation
    state = index.states.get(citation.entity_id)
    if state is None or shorten(state.state) != citation.state:
        return citation
    return cite_state(index, state)


def _redact(citation: Citation) -> Citation:
    match citation:
        case EntityCitation(name=name, state=state):
            return replace(citation, name=redact(name), state=redact(state))
        case TurnCitation(text=text):
            return replace(citation, text=redact(text))
    return citation
