"""What is left of evicted turns: one line each, with every identifier word for word, at no cost.

Extractive: nothing is rephrased. A line has the turn's first words, and then each error code, path, host,
entity id, number with its unit and quoted string that the first words did not show; of a result that is JSON
the first names among its values. The oldest lines go when the digest would outgrow its budget; the transcript
still has them.
"""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import islice

from sash.errors import InvalidLimit
from sash.values.messages import MessageEntry
from sash.values.validation import check_limit

DIGEST_TOKENS = 2000

_FIRST_WORDS = 12
_FIRST_CHARS = 90
_LONGEST = 1000
_NOTE_TOKENS = 16
_LEAST_TOKENS = 2 * _NOTE_TOKENS

# A word is cut at blanks, quotes, brackets and commas, so that a name is always taken whole; 1,000 and
# rows[0] stay together. Everything else is a form of more than one word, tried first. At each place a pattern
# looks at a bounded stretch or at one word, so that a hostile text costs linear time.
_BREAKS = r"\s,;\"'`<>(){}\[\]|“”«»…"
_WORD = rf"[^{_BREAKS}]+(?:,(?<=\d,)(?=\d)[^{_BREAKS}]+|\[[\w-]{{1,40}}\][^{_BREAKS}]*)*"
_START = rf"(?<![^{_BREAKS}=:])"
_QUOTES = (('"', '"'), ("`", "`"), ("“", "”"), ("„", "“"), ("«", "»"), ("‘", "’"))
_LINE_ENDS = r"\n\r\v\f\x1c-\x1e\x85\u2028\u2029"
_NUMBER = r"[-+−]?\d{1,30}(?:[.,]\d{1,30}){0,8}"
_UNIT = (
    r"(?:%|‰|°[CFK]?|percent|degrees|(?:milli|micro)?seconds?|minutes?|hours?|days?|weeks?|months?|years?|tokens?"
    r"|mph|rpm|ppm|ppb|psi|lbs?|inch(?:es)?|feet|ft|kcal|Nm|N|USD|EUR|GBP|CHF|JPY"
    r"|[kKMGTPmµμunhdc]?(?:Wh|W|VAh|VA|V|Ah|A|Hz|bps|bit|bar|B|b|L|l|m|g|s|Pa|J|Ω|lm|lx|K|iB)|min|h|dBm?|[€$£¥])"
    r"[²³]?(?:/[A-Za-zµ]{1,6}[²³]?)?(?![\w/]|[.:@_-]\w)"
)
_identifier = re.compile(
    "|".join(
        (
            *(
                rf"{_START}{opening}[^{closing}{_LINE_ENDS}]{{1,300}}{closing}(?!\w)"
                for opening, closing in _QUOTES
            ),
            rf"{_START}'(?:[^'{_LINE_ENDS}]|'(?=\w)){{1,300}}'(?!\w)",
            r"(?P<url>(?<![\w+.-])[a-zA-Z][a-zA-Z0-9+.-]{1,20}://[^\s<>\"'`]+)",
            rf"{_WORD},? (?:on )?line \d+(?!\w)",
            rf"{_START}[Ll]ines? \d+(?:[-–]\d+)?(?!\w)",
            rf"{_START}(?:HTTP|(?:error |exit )?code|error|status|port|step|version|room|zone) \d[\w.:-]*",
            rf"{_START}[€$£¥] ?{_NUMBER}(?!\w)",
            rf"{_START}{_NUMBER} ?{_UNIT}",
            rf"(?P<word>{_WORD})",
        )
    )
)
_telling = re.compile(r"\d|[/\\_@#$=~]|\w[.:]\w|^--?\w|[a-z][A-Z]|^[A-Z]{2,}$")
_timestamp = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]|$)")
_MAX_OF_A_RESULT = 12
_NOT_A_NAME = frozenset({"and/or", "e.g", "i.e", "OK"})
_TRAILING = ".,;:!?"


def identifiers(text: str) -> list[str]:
    """Return what in the text would be wrong if it were paraphrased, each once, in order."""
    return list(dict.fromkeys(_identifiers(text)))


def _identifiers(text: str) -> Iterator[str]:
    for match in _identifier.finditer(text):
        found = match.group().rstrip(_TRAILING)
        if match["url"]:
            found = _balanced(found)
        elif match["word"]:
            found = found if found.startswith("::") else found.lstrip(":=")
            if found in _NOT_A_NAME or not _telling.search(found) or not any(map(str.isalnum, found)):
                continue
        yield found


def _balanced(url: str) -> str:
    """Leave off the brackets that close what the URL stands in."""
    for opening, closing in (("(", ")"), ("[", "]")):
        unopened = max(0, url.count(closing) - url.count(opening))
        at_the_end = len(url) - len(url.rstrip(closing))
        url = url[: len(url) - min(unopened, at_the_end)].rstrip(_TRAILING)
    return url


def digest(
    evicted: Sequence[Sequence[MessageEntry]],
    count_text: Callable[[str], int],
    max_tokens: int = DIGEST_TOKENS,
) -> str:
    """Return a line for each turn, of what was evicted of it: the newest lines that fit into `max_tokens`."""
    if check_limit("max_tokens", max_tokens) < _LEAST_TOKENS:
        raise InvalidLimit(f"a digest needs max_tokens of at least {_LEAST_TOKENS}, got {max_tokens}")
    lines: list[str] = []
    budget = max_tokens - _NOTE_TOKENS
    for left, turn in zip(range(len(evicted), 0, -1), reversed(evicted), strict=True):
        line = _line(turn)
        cost = count_text(line) + 1
        if cost > budget:
            line = _shorten(line, count_text, budget) if not lines else ""
            if not line:
                lines.append(f"- ({left} earlier turn{'s' * (left > 1)}, see the transcript)")
                break
        lines.append(line)
        budget -= cost
    return "\n".join(reversed(lines))


def _line(turn: Sequence[MessageEntry]) -> str:
    words = turn[0].text.split() or ["(no text)"]
    first = " ".join(words[:_FIRST_WORDS])
    if len(first) > _FIRST_CHARS:
        first = first[:_FIRST_CHARS].rsplit(" ", 1)[0]
    if len(words) > _FIRST_WORDS or len(first) < len(" ".join(words)):
        first += " …"
    seen = set(identifiers(first))
    names = dict.fromkeys(item for item in _turn_identifiers(turn) if item not in seen)
    shown = [item for item in names if len(item) <= _LONGEST]
    if len(shown) < len(names):
        shown.append(f"… +{len(names) - len(shown)}")
    return f"- {first} | {' · '.join(shown)}" if shown else f"- {first}"


def _turn_identifiers(turn: Sequence[MessageEntry]) -> Iterator[str]:
    for message in turn:
        if message.role == "tool" and (values := _values(message.text)) is not None:
            found = dict.fromkeys(item for value in values for item in _identifiers(value))
            yield from islice((item for item in found if not _is_bare(item)), _MAX_OF_A_RESULT)
        else:
            yield from _identifiers(message.text)
        for call in message.tool_calls:
            yield call["function"]["name"]
            arguments = call["function"]["arguments"]
            for value in _values(arguments) or [arguments]:
                yield from _identifiers(value)


def _values(text: str) -> list[str] | None:
    """Return the texts in a result that is JSON: its keys are the tool's words, and not what was found."""
    try:
        waiting, values = [json.loads(text)], []
    except (ValueError, RecursionError):
        return None
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            values.append(value)
        elif isinstance(value, dict):
            waiting += reversed(value.values())
        elif isinstance(value, list):
            waiting += reversed(value)
    return values


def _is_bare(item: str) -> bool:
    """Whether an identifier out of a result is only a number or a time, of which results have plenty."""
    return not any(map(str.isalpha, item)) or _timestamp.match(item) is not None


def _shorten(line: str, count_text: Callable[[str], int], budget: int) -> str:
    """Drop identifiers from the end of a line until it fits."""
    items = line.split(" · ")
    low, high = 0, len(items)
    while low < high:
        middle = (low + high + 1) // 2
        if count_text(" · ".join(items[:middle])) <= budget:
            low = middle
        else:
            high = middle - 1
    return f"{' · '.join(items[:low])} · … +{len(items) - low}" if low else ""
