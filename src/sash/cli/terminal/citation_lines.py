"""The sources of an answer and the next steps after it, as lines for a terminal."""

from collections.abc import Iterator
from datetime import datetime

from sash.cli.terminal.console import one_line
from sash.ports.home import NO_STATE
from sash.values.citations import Citation, EntityCitation, HistoryCitation, LogCitation, TurnCitation
from sash.values.continuations import ContinuationResponse

MAX_LINE_CHARS = 160


def list_notes(response: ContinuationResponse, *, with_ids: bool = True) -> Iterator[tuple[str, str]]:
    """Yield "from" with one line for each citation, and "next" with one for each follow-up.

    `with_ids` adds the ids of entities to their names.
    """
    for citation in response.citations:
        yield "from", one_line(describe_citation(citation, with_ids=with_ids), MAX_LINE_CHARS)
    for sentence in response.follow_ups:
        yield "next", one_line(sentence, MAX_LINE_CHARS)


def describe_citation(citation: Citation, *, with_ids: bool = True) -> str:
    """Return a citation in words, with times in the time zone of the terminal."""
    match citation:
        case EntityCitation(entity_id, name, state, unit, at):
            value = f"{state} {unit}" if unit and state not in NO_STATE else state
            since = f", since {_format(at)}" if at else ""
            return f"{_name(name, entity_id, with_ids)}: {value}{since}"
        case HistoryCitation(entity_id, name, start, end):
            return f"the history of {_name(name, entity_id, with_ids)}, {_format(start)} to {_format(end)}"
        case LogCitation(at, text):
            return f"the log of {_format(at)}: {text}"
        case TurnCitation(at, text):
            return f"what was said on {_format(at)}: {text}"


def _name(name: str, entity_id: str, with_id: bool) -> str:
    return f"{name} ({entity_id})" if with_id else name


def _format(at: datetime) -> str:
    return f"{at.astimezone():%Y-%m-%d %H:%M}"
