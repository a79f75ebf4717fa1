"""What is left of evicted turns: one line each, with every identifier word for word, at no cost.

Extractive: nothing is rephrased. A line has the turn's first words, and then each error code, path, host,
entity id, number with its unit and quoted string that the first words did not show. The oldest lines go
when the digest would outgrow its budget; the transcript still has them.
"""

import re
from collections.abc import Callable, Iterable, Iterator

from sash.state import MessageEntry, turns

DIGEST_TOKENS = 2000

_FIRST_WORDS = 12
_FIRST_CHARS = 90
_LONGEST = 300
_NOTE_TOKENS = 16

# In order of preference at one position. Every repetition is bounded, and a run of name characters is entered
# only at its start, so that a hostile text costs linear time.
_UNITS = (
    r"%|‰|°[CFK]?|(?:percent|degrees|seconds?|minutes?|hours?|days?|weeks?|tokens?|lux|lx|ppm|ppb|bar|psi|dBm?|"
    r"[kMGTmµu]?(?:Wh?|VAh?|V|A|Ah|B|b|Hz|bps|bit|iB|L|l|m|g|s|Pa|J|Ω)|[KMGT]i?B|[kc]m|m²|m³|min|h|K|rpm)\b"
)
_PATTERNS = (
    # quoted strings: "…", “…”, `…`, and '…' where the quotes are not apostrophes
    r'"[^"\n]{1,160}"',
    r"“[^”\n]{1,160}”",
    r"`[^`\n]{1,160}`",
    r"(?<![\w'])'[^'\n]{1,160}'(?!\w)",
    # URLs and e-mail addresses
    r"(?<![\w+.-])[a-zA-Z][a-zA-Z0-9+.-]{1,20}://[^\s<>\"'`]{1,2000}",
    r"(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}",
    # a file with its line: config.py line 45, main.rs:12:5, line 4
    r"(?<![\w-])[\w-]{1,80}\.[a-zA-Z]\w{0,9}(?:,? (?:on )?line |:)\d{1,7}(?::\d{1,5})?",
    r"\b[Ll]ines? \d{1,7}(?:[-–]\d{1,7})?",
    # paths: C:\x\y, /api/users/123, src/sash/tokens.py, ~/notes.txt
    r"\b[A-Za-z]:\\[\w\\.-]{1,160}",
    r"(?<![\w/])(?:~|\.{1,2})?/[\w.@%+:=~-]{1,80}(?:/[\w.@%+:=~-]{1,80}){0,30}/?",
    r"(?<![\w./-])[\w.-]{1,80}(?:/[\w.@%+:=~-]{1,80}){1,30}",
    # UUIDs, MAC addresses, IP addresses, hexadecimal numbers, hashes
    r"\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b",
    r"\b[0-9a-fA-F]{2}(?:[:-][0-9a-fA-F]{2}){5}\b",
    r"\b\d{1,3}(?:\.\d{1,3}){3}(?::\d{1,5})?\b",
    r"\b0x[0-9a-fA-F]{1,32}\b",
    r"\b(?=[a-f]{0,40}\d)(?=\d{0,40}[a-f])[0-9a-f]{7,64}\b",
    # dates, times, money, and amounts with their unit: 2026-11-15, 06:42, $0.01, 21.5 °C, 35 percent, 3.5kWh
    r"\b\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?:Z|[+-]\d{2}:?\d{2})?)?",
    r"\b\d{1,2}:\d{2}(?::\d{2})?(?: ?[aApP]\.?[mM]\b)?",
    r"[$€£¥]\d{1,30}(?:[.,]\d{1,30}){0,8}",
    rf"(?<![\w.])[-+−]?\d{{1,30}}(?:[.,]\d{{1,30}}){{0,3}} ?(?:{_UNITS})",
    # hosts, entity ids, versions, other dotted names: db.example.com:5432, light.kitchen, v1.2.3, rows[0].x
    r"(?<![\w.])\w{1,80}(?:[.\[](?=\w)[\w-]{1,80}\]?){1,12}(?:\(\))?(?::\d{1,5}\b)?",
    # flags, variables, codes, names in code: --dry-run, $HOME, #123, HTTP 500, ERR_TIMEOUT, TypeError, call()
    r"(?<![\w-])--?[a-zA-Z][\w-]{1,40}",
    r"(?<![\w@#$])[$#@]\w{1,60}",
    r"\b(?:HTTP|error code|exit code|error|code|status|port|step|version)[ :#]{1,2}\d[\w.]{0,20}",
    r"(?<![\w-])[A-Za-z]{1,20}[-_]?\d[\w-]{0,40}\b",
    r"(?<!\w)_{0,4}[a-zA-Z0-9]{1,40}_\w{0,80}(?:\(\))?",
    r"\b[a-z]{1,40}[A-Z]\w{1,60}(?:\(\))?",
    r"\b[A-Z][a-z]{1,40}[A-Z]\w{1,60}(?:\(\))?",
    r"\b[A-Z]{2,40}\b",
    r"\b[a-zA-Z]\w{0,60}\(\)",
    r"(?<![\w.])[-+−]?\d{1,30}(?:[.,]\d{1,30}){0,8}(?!\d)",
)
_NOT_A_NAME = frozenset({"e.g", "i.e", "and/or", "OK"})
_identifier = re.compile("|".join(_PATTERNS))
_TRAILING = ".,;:!?"


def identifiers(text: str) -> list[str]:
    """Return what in the text would be wrong if it were paraphrased, each once, in order."""
    found = (match.group().rstrip(_TRAILING) for match in _identifier.finditer(text))
    return list(dict.fromkeys(item for item in found if item and item not in _NOT_A_NAME))


def digest(
    messages: Iterable[MessageEntry],
    count_text: Callable[[str], int],
    max_tokens: int = DIGEST_TOKENS,
) -> str:
    """Return the digest of evicted messages, the newest lines that fit into `max_tokens`."""
    lines: list[str] = []
    budget = max_tokens - _NOTE_TOKENS
    evicted = turns(messages)
    for left, turn in zip(range(len(evicted), 0, -1), reversed(evicted), strict=True):
        line = _line(turn)
        cost = count_text(line) + 1
        if cost > budget:
            line = _shorten(line, count_text, budget) if not lines else ""
            if not line:
                lines.append(f"- ({left} earlier turns, see the transcript)")
                break
        lines.append(line)
        budget -= cost
    return "\n".join(reversed(lines))


def _line(turn: list[MessageEntry]) -> str:
    words = turn[0].text.split()
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


def _turn_identifiers(turn: list[MessageEntry]) -> Iterator[str]:
    for message in turn:
        yield from identifiers(message.text)
        for call in message.tool_calls:
            yield call["function"]["name"]
            yield from identifiers(call["function"]["arguments"])


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
