"""The identifiers in a text, each found whole.

Identifiers are error codes, paths, hosts, entity ids, numbers with their units, dates, IBANs, phone numbers
and quoted texts.
"""

import re
from collections.abc import Iterator

from sash.values.long_text import iterate_matches

# A word ends at blanks, quotes, brackets and commas, so that a name is always taken whole; 1,000 and rows[0]
# stay together. The other patterns match several words and are tried first. At each position a pattern reads
# a bounded stretch or one word, so that a hostile text costs linear time.
_BREAKS = r"\s,;\"'`<>(){}\[\]|“”«»…"
_WORD = rf"[^{_BREAKS}]+(?:,(?<=\d,)(?=\d)[^{_BREAKS}]+|\[[\w-]{{1,40}}\][^{_BREAKS}]*)*"
_START = rf"(?<![^{_BREAKS}=:])"
_QUOTES = (
    *(('"', '"'), ("`", "`"), ("“", "”"), ("„", "“"), ("«", "»"), ("»", "«")),
    *(("‘", "’"), ("‚", "‘"), ("‹", "›"), ("›", "‹")),
)
_LINE_ENDS = r"\n\r\v\f\x1c-\x1e\x85\u2028\u2029"
_BLANK = r"[ \u00a0\u202f]"
# The end of a number: it does not go on behind a sign, as 2026-11-15 and 12:30 do.
_END = r"(?!\w|[-–.,:/@]\w)"

_FRACTION = "[¼½¾⅐-⅞]"
_DIGITS = (
    rf"(?:\d{{1,3}}(?:{_BLANK}\d{{3}}){{1,4}}(?!\d)(?:[.,]\d{{1,9}})?|\d{{1,30}}(?:[.,]\d{{1,30}}){{0,8}})"
)
_NUMBER = rf"[-+−±]?(?:{_DIGITS}(?: ?{_FRACTION}| \d/\d{{1,2}}(?!\w))?|{_FRACTION})"
_TIMES = rf"(?: ?[x×*] ?{_NUMBER}){{1,3}}"
_JOINED = rf"(?:(?: ?[-x×*±–—] ?| (?:to|bis|mal|by|à|a|tot) ){_NUMBER}){{0,3}}"
_UNIT = (
    r"(?:%|‰|°[CFK]?|percent|degrees|euros?|Euros?|pounds?|dollars?|Prozent|Grad|Uhr|Stunden?|Minuten?|Tagen?|Wochen?|"
    r"heures?|jours?|semaines?|horas?|minutos?|días?|semanas?|ore|minuti|giorni|settimane|uur|minuten|dagen|weken|"
    r"(?:milli|micro)?seconds?|minutes?|hours?|days?|weeks?|months?|years?|tokens?|"
    r"cups?|teaspoons?|tablespoons?|tsp|tbsp|oz|ounces?|EL|TL|Teelöffel|Esslöffel|Tassen?|tasses?|tazas?|tazze|kopjes?"
    r"|mph|rpm|ppm|ppb|psi|lbs?|inch(?:es)?|feet|ft|kcal|Nm|N|USD|EUR|GBP|CHF|JPY|kr"
    r"|[kKMGTPmµμunhdc]?(?:Wh|W|VAh|VA|V|Ah|A|Hz|bps|bit|bar|B|b|L|l|m|g|s|Pa|J|Ω|lm|lx|K|iB)|min|h|dBm?|[€$£¥])"
    r"[²³]?(?:/[A-Za-zµ]{1,6}[²³]?)?(?![\w/]|[.:@_'’-]\w)"
)
_CLOCK_TIME = r"\d{1,2}(?:[:.]\d\d)?"
_CLOCK_UNIT = r"(?:[ap]\.m\.|[ap]m|[AP]M|Uhr|uur|o['’]clock)(?!\w)"

_MONTH = (
    r"(?i:January|February|March|April|May|June|July|August|September|October|November|December|"
    r"Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept|Sep|Oct|Okt|Nov|Dec|Dez|"
    r"Januar|Jänner|Februar|März|Mai|Juni|Juli|Oktober|Dezember|"
    r"janvier|février|mars|avril|juin|juillet|août|septembre|octobre|novembre|décembre|janv|févr|avr|juil|déc|"
    r"enero|febrero|marzo|abril|mayo|junio|julio|agosto|septiembre|setiembre|octubre|noviembre|diciembre|"
    r"gennaio|febbraio|aprile|maggio|giugno|luglio|settembre|ottobre|dicembre|"
    r"januari|februari|maart|mei|augustus)(?!\w)\.?"
)
_DAY = r"\d{1,2}(?:st|nd|rd|th|er|\.|º|°)?"
_DAYS = rf"{_DAY}(?: ?[-–/] ?{_DAY})?"
_YEAR = r" \d{4}(?!\w)"

# A label may stand before a number without a blank: Tel:+49 30 5557 8812.
_LABEL = r"(?:[^\W\d_]{1,12}[.:=])?"
_SEVEN_DIGITS = rf"(?=(?:(?:{_BLANK}|[-+()/–]){{0,4}}\d){{7}})"
_NOT_A_DATE = r"(?!\d\d[-/]\d\d[-/](?:19|20)\d\d(?!\d))"
_GAP = rf"(?: ?[-/–] ?|{_BLANK})"
_AREA = r"\(\+?\d{1,6}\)"

_DATES = (
    rf"{_DAYS} (?:(?:of|de|del) )?{_MONTH}(?:(?:,| de| del| di)?{_YEAR})?",
    rf"(?=[A-Z]){_MONTH} {_DAYS}(?!\w)(?:,?{_YEAR})?",
    rf"{_MONTH}(?: de| del| di)?{_YEAR}",
    rf"\d{{1,2}}\. \d{{1,2}}\.(?:{_YEAR}|(?!\w))",
)
_IBAN = rf"{_LABEL}[A-Z]{{2}}\d\d(?:{_BLANK}[A-Z0-9]{{4}}){{2,7}}(?:{_BLANK}\d[A-Z0-9]{{0,2}})?(?!\w)"
_QUOTED = (
    *(rf"{opening}[^{closing}{_LINE_ENDS}]{{1,300}}{closing}(?!\w)" for opening, closing in _QUOTES),
    rf"'(?:[^'{_LINE_ENDS}]|'(?=\w)){{1,300}}'(?!\w)",
)
_LABELLED = (
    r"[Ll]ines? \d+(?:[-–]\d+)?(?!\w)",
    r"(?:HTTP|(?:error |exit )?code|error|status|port|step|version|room|zone) \d[\w.:-]*",
)
_QUANTITIES = (
    rf"{_CLOCK_TIME}(?: ?(?:[-–]|to|bis|tot) ?{_CLOCK_TIME})? ?{_CLOCK_UNIT}",
    rf"[€$£¥] ?{_NUMBER}(?!\w)",
    rf"{_NUMBER}{_JOINED} ?{_UNIT}",
    rf"{_NUMBER}{_TIMES}{_END}",
    rf"\d{{1,9}} ?{_FRACTION}{_END}",
)
# With a country or an area in front, or as groups of digits.
_PHONE_NUMBERS = (
    rf"{_LABEL}{_SEVEN_DIGITS}{_NOT_A_DATE}(?:\+\d{{1,15}}|0\d{{0,5}}|{_AREA}{_GAP}?\d{{1,9}})"
    rf"(?:(?:{_GAP}?{_AREA}{_GAP}?|{_GAP})\d{{1,9}}){{1,7}}{_END}",
    rf"{_SEVEN_DIGITS}\d{{1,4}}(?:{_BLANK}\d{{2,4}}){{2,7}}{_END}(?! ?{_UNIT})",
    rf"\d{{3}}[ -]\d{{3}}[ -]\d{{4}}{_END}",
)
# Of several parts: LH 123, HH AB 1234, KX71 OBD, SW1A 1AA, 1012 AB.
_CODES = (
    r"(?:[A-Z]{2,4}|[A-Z]{1,3}-[A-Z]{1,2})(?: [A-Z]{1,2})?"
    rf" \d{{1,9}}(?: \d{{3}}){{0,3}}[A-Z]?{_END}(?! ?{_UNIT})",
    rf"[A-Z]{{1,2}}\d{{1,2}}[A-Z]? (?:[A-Z]{{3}}|\d[A-Z]{{2}}){_END}",
    rf"\d{{4}} [A-Z]{{2}}{_END}",
)
_SEVERAL_WORDS = "|".join((*_DATES, _IBAN, *_QUOTED, *_LABELLED, *_QUANTITIES, *_PHONE_NUMBERS, *_CODES))
_identifier = re.compile(
    r"(?P<url>(?<![\w+.-])[a-zA-Z][a-zA-Z0-9+.-]{1,20}://[^\s<>\"'`]+)"
    rf"|{_WORD},? (?:on )?line \d+(?!\w)"
    rf"|{_START}(?:{_SEVERAL_WORDS})"
    rf"|(?P<word>{_WORD})"
)
_identifying = re.compile(r"\d|[/\\_@#$=~]|\w[.:]\w|^--?\w|[a-z][A-Z]|^[A-Z]{2,}$")
_NO_IDENTIFIERS = frozenset({"and/or", "e.g", "i.e", "OK"})
_TRAILING = ".,;:!?"


def find_identifiers(text: str) -> list[str]:
    """Return the codes, paths, ids, numbers with units and quotes in a text, each once, in order."""
    return list(dict.fromkeys(iterate_identifiers(text)))


def iterate_identifiers(text: str) -> Iterator[str]:
    """Yield the identifiers of a text in order, each as often as it occurs."""
    for match in iterate_matches(_identifier, text):
        found = match.group().rstrip(_TRAILING)
        if match["url"]:
            found = _strip_closing_brackets(found)
        elif match["word"]:
            found = found if found.startswith("::") else found.lstrip(":=")
            if found in _NO_IDENTIFIERS or not _identifying.search(found) or not any(map(str.isalnum, found)):
                continue
        yield found


def _strip_closing_brackets(url: str) -> str:
    """Remove trailing brackets that were opened before the URL."""
    for opening, closing in (("(", ")"), ("[", "]")):
        unopened = max(0, url.count(closing) - url.count(opening))
        trailing = len(url) - len(url.rstrip(closing))
        url = url[: len(url) - min(unopened, trailing)].rstrip(_TRAILING)
    return url
