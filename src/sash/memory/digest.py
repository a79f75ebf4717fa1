"""The digest of evicted turns: one line for each turn, with its identifiers verbatim, without a model.

The digest is extractive: nothing is rephrased. A line has the turn's first words. Then it lists every
further error code, path, host, entity id, number with its unit, date, phone number and quoted string, and
names of people and places. Of a JSON result it lists only the first few names among the values. If the
digest exceeds its budget, its oldest lines are dropped; the transcript still has them.
"""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby, islice

from sash.errors import InvalidLimit
from sash.values.long_text import iterate_matches
from sash.values.messages import MessageEntry
from sash.values.validation import check_limit

DIGEST_TOKENS = 2000

_FIRST_WORDS = 12
_FIRST_CHARS = 90
_MAX_IDENTIFIER_LENGTH = 1000
_NOTE_TOKENS = 16
# A digest with fewer tokens has no room for a line.
MIN_DIGEST_TOKENS = 2 * _NOTE_TOKENS

# A word ends at blanks, quotes, brackets and commas, so that a name is always taken whole; 1,000 and rows[0]
# stay together. The other patterns match several words and are tried first. At each position a pattern reads
# a bounded stretch or one word, so that a hostile text costs linear time.
_BREAKS = r"\s,;\"'`<>(){}\[\]|“”«»…"
_WORD = rf"[^{_BREAKS}]+(?:,(?<=\d,)(?=\d)[^{_BREAKS}]+|\[[\w-]{{1,40}}\][^{_BREAKS}]*)*"
_START = rf"(?<![^{_BREAKS}=:])"
_QUOTES = (('"', '"'), ("`", "`"), ("“", "”"), ("„", "“"), ("«", "»"), ("‘", "’"))
_LINE_ENDS = r"\n\r\v\f\x1c-\x1e\x85\u2028\u2029"
_NUMBER = r"[-+−]?\d{1,30}(?:[.,]\d{1,30}){0,8}"
_UNIT = (
    r"(?:%|‰|°[CFK]?|percent|degrees|euros?|Euros?|pounds?|dollars?|Prozent|Grad|Uhr|Stunden?|Minuten?|Tagen?|Wochen?|"
    r"heures?|jours?|semaines?|horas?|minutos?|días?|semanas?|ore|minuti|giorni|settimane|uur|minuten|dagen|weken|"
    r"(?:milli|micro)?seconds?|minutes?|hours?|days?|weeks?|months?|years?|tokens?"
    r"|mph|rpm|ppm|ppb|psi|lbs?|inch(?:es)?|feet|ft|kcal|Nm|N|USD|EUR|GBP|CHF|JPY"
    r"|[kKMGTPmµμunhdc]?(?:Wh|W|VAh|VA|V|Ah|A|Hz|bps|bit|bar|B|b|L|l|m|g|s|Pa|J|Ω|lm|lx|K|iB)|min|h|dBm?|[€$£¥])"
    r"[²³]?(?:/[A-Za-zµ]{1,6}[²³]?)?(?![\w/]|[.:@_-]\w)"
)
_MONTH = (
    r"(?:Jan(?:uar[yi]?|\.)?|Feb(?:ruar[yi]?|\.)?|M(?:arch|ärz|aart)|A(?:pril|ugust|ug\.)|Ma[yi]|Jun[ei]|Jul[yi]|"
    r"Sept(?:ember|\.)?|O[ck]t(?:ober|\.)?|Nov(?:ember|\.)?|De[cz](?:ember|\.)?|"
    r"janvier|février|mars|avril|mai|juin|juillet|août|septembre|octobre|novembre|décembre|"
    r"enero|febrero|marzo|abril|mayo|junio|julio|agosto|septiembre|octubre|noviembre|diciembre|"
    r"gennaio|febbraio|aprile|maggio|giugno|luglio|settembre|ottobre|dicembre|"
    r"januari|februari|maart|april|mei|juni|juli|augustus|september|oktober|november|december)"
)
_DAY = r"\d{1,2}(?:st|nd|rd|th|er|\.|º)?"
_identifier = re.compile(
    "|".join(
        (
            rf"{_START}{_DAY} (?:(?:of|de|del) )?{_MONTH}(?:,? \d{{4}})?(?!\w)",
            rf"{_START}{_MONTH} {_DAY}(?:,? \d{{4}})?(?!\w)",
            # An IBAN, and a phone number.
            rf"{_START}[A-Z]{{2}}\d\d(?: [A-Z0-9]{{4}}){{2,7}}(?: [A-Z0-9]{{1,3}})?(?!\w)",
            rf"{_START}(?:\+\d{{1,4}}|0\d{{1,5}})(?: ?[ /–-] ?\d{{2,8}}){{1,6}}(?![\w.:])",
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
_identifying = re.compile(r"\d|[/\\_@#$=~]|\w[.:]\w|^--?\w|[a-z][A-Z]|^[A-Z]{2,}$")
# A name of a person or a place: after a title, or in the middle of a sentence.
_titled = re.compile(
    r"(?<!\w)(?:Dr|Mr|Mrs|Ms|Miss|Prof|Frau|Herrn?|Familie|Mme|Madame|Monsieur|Sra?|Señora?|Signora?|Dott|Mevrouw|Meneer)"
    r"\.? [^\W\d_a-z][\w'’-]{1,30}(?:[ -][^\W\d_a-z][\w'’-]{1,30})?"
)
_capital = re.compile(
    r"(?<=[^\W\d_][ ,])[^\W\d_a-z](?!['’])[^\W\d_][\w'’-]{1,30}(?: [^\W\d_a-z][\w'’-]{2,30}){0,2}"
)
# In German every noun begins with a capital, so that only a title tells a name.
_german = re.compile(
    r"(?<!\w)(?:der|die|das|den|dem|eine?|einen|einem|einer|zum|zur|vom|von|und|nicht|ist|ich|wir|für|auf|mit|hat|noch|bitte)"
    r"(?!\w)"
)
_MAX_NAMES = 6
_timestamp = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]|$)")
_MAX_NAMES_PER_RESULT = 12
_NOT_A_NAME = frozenset({"and/or", "e.g", "i.e", "OK"})
_TRAILING = ".,;:!?"


def find_identifiers(text: str) -> list[str]:
    """Return the codes, paths, ids, numbers with units and quotes in a text, each once, in order."""
    return list(dict.fromkeys(_iterate_identifiers(text)))


def find_names(text: str) -> list[str]:
    """Return names of people and places in a text, each once, at most `_MAX_NAMES`."""
    titled = [match.group() for match in iterate_matches(_titled, text)]
    is_german = len({match.group() for match in iterate_matches(_german, text)}) > 1
    capitals = [] if is_german else [match.group() for match in iterate_matches(_capital, text)]
    titled = [name for name in titled if _is_name(name)]
    capitals = [name for found in capitals for name in _list_capital_runs(found)]
    names = dict.fromkeys((*titled, *(name for name in capitals if not any(name in each for each in titled))))
    return list(names)[:_MAX_NAMES]


def _list_capital_runs(text: str) -> list[str]:
    """Return the runs of words that begin with a capital, in any script."""
    runs = (" ".join(words) for is_name, words in groupby(text.split(), _is_name) if is_name)
    return list(runs)


def _is_name(text: str) -> bool:
    """Return whether all words begin with a capital, and are not only capitals."""
    return all(word[0].isupper() and not word.isupper() for word in text.replace("-", " ").split())


def _iterate_identifiers(text: str) -> Iterator[str]:
    for match in iterate_matches(_identifier, text):
        found = match.group().rstrip(_TRAILING)
        if match["url"]:
            found = _strip_closing_brackets(found)
        elif match["word"]:
            found = found if found.startswith("::") else found.lstrip(":=")
            if found in _NOT_A_NAME or not _identifying.search(found) or not any(map(str.isalnum, found)):
                continue
        yield found


def _strip_closing_brackets(url: str) -> str:
    """Remove trailing brackets that were opened before the URL."""
    for opening, closing in (("(", ")"), ("[", "]")):
        unopened = max(0, url.count(closing) - url.count(opening))
        trailing = len(url) - len(url.rstrip(closing))
        url = url[: len(url) - min(unopened, trailing)].rstrip(_TRAILING)
    return url


def check_digest_tokens(name: str, value: int) -> int:
    """Return `value` unchanged. Raise `InvalidLimit` if a digest of so many tokens has no room for a line."""
    if check_limit(name, value) < MIN_DIGEST_TOKENS:
        raise InvalidLimit(f"a digest needs {name} of at least {MIN_DIGEST_TOKENS}, got {value}", limit=name)
    return value


def build_digest(
    evicted: Sequence[Sequence[MessageEntry]],
    count_text: Callable[[str], int],
    max_tokens: int = DIGEST_TOKENS,
) -> str:
    """Return one line for each turn, made from its evicted messages. Keep the newest within `max_tokens`.

    Raises:
        InvalidLimit: `max_tokens` is too small for one line.
    """
    check_digest_tokens("max_tokens", max_tokens)
    lines: list[str] = []
    budget = max_tokens - _NOTE_TOKENS
    for turns_left, turn in zip(range(len(evicted), 0, -1), reversed(evicted), strict=True):
        line = _build_line(turn)
        cost = count_text(line) + 1
        if cost > budget:
            line = _shorten(line, count_text, budget) if not lines else ""
            if not line:
                lines.append(f"- ({turns_left} earlier turn{'s' * (turns_left > 1)}, see the transcript)")
                break
        lines.append(line)
        budget -= cost
    return "\n".join(reversed(lines))


def _build_line(turn: Sequence[MessageEntry]) -> str:
    words = turn[0].text.split() or ["(no text)"]
    first = " ".join(words[:_FIRST_WORDS])
    if len(first) > _FIRST_CHARS:
        first = first[:_FIRST_CHARS].rsplit(" ", 1)[0]
    if len(words) > _FIRST_WORDS or len(first) < len(" ".join(words)):
        first += " …"
    seen = set(find_identifiers(first))
    people = (name for m in turn if m.role != "tool" for name in find_names(m.text) if name not in first)
    items = (*_iterate_turn_identifiers(turn), *people)
    names = dict.fromkeys(item for item in items if item not in seen)
    shown = [item for item in names if len(item) <= _MAX_IDENTIFIER_LENGTH]
    if len(shown) < len(names):
        shown.append(f"… +{len(names) - len(shown)}")
    return f"- {first} | {' · '.join(shown)}" if shown else f"- {first}"


def _iterate_turn_identifiers(turn: Sequence[MessageEntry]) -> Iterator[str]:
    for message in turn:
        if message.role == "tool" and (values := _read_json_texts(message.text)) is not None:
            found = dict.fromkeys(item for value in values for item in _iterate_identifiers(value))
            yield from islice((item for item in found if not _is_number_or_time(item)), _MAX_NAMES_PER_RESULT)
        else:
            yield from _iterate_identifiers(message.text)
        for call in message.tool_calls:
            arguments = call["function"]["arguments"]
            for value in _read_json_texts(arguments) or [arguments]:
                yield from _iterate_identifiers(value)


def _read_json_texts(text: str) -> list[str] | None:
    """Return the strings among the values of a JSON text, without keys. None if the text is not JSON."""
    try:
        pending, values = [json.loads(text)], []
    except (ValueError, RecursionError):
        return None
    while pending:
        value = pending.pop()
        if isinstance(value, str):
            values.append(value)
        elif isinstance(value, dict):
            pending += reversed(value.values())
        elif isinstance(value, list):
            pending += reversed(value)
    return values


def _is_number_or_time(item: str) -> bool:
    """Whether an identifier is only a number or a time. Tool results have too many of these."""
    return not any(map(str.isalpha, item)) or _timestamp.match(item) is not None


def _shorten(line: str, count_text: Callable[[str], int], budget: int) -> str:
    """Drop identifiers from the end of a line until it has at most `budget` tokens; empty if none fits."""
    items = line.split(" · ")
    low, high = 0, len(items)
    while low < high:
        middle = (low + high + 1) // 2
        if count_text(" · ".join(items[:middle])) <= budget:
            low = middle
        else:
            high = middle - 1
    return f"{' · '.join(items[:low])} · … +{len(items) - low}" if low else ""
