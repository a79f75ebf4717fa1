"""Quotes what a person said, as part of an answer."""

MAX_CHARS = 200
_ENDS = " .!,;:"


def quote(text: str) -> str:
    """Return a sentence on one line, shortened and without its end, to be put between quotation marks."""
    line = " ".join(text.split()).replace("“", "'").replace("”", "'").replace('"', "'")
    short = line if len(line) <= MAX_CHARS else f"{line[:MAX_CHARS].rsplit(' ', 1)[0]} …"
    return short.strip(_ENDS) or short
