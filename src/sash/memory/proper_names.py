"""The names of people and places in a text, each found whole."""

import re
from collections.abc import Iterator

from sash.memory.recall_lexicon import choose_language, load_recall_lexicon
from sash.memory.words import normalize, split_words
from sash.values.long_text import iterate_matches

_MAX_NAMES = 6
_LANGUAGE_CHARS = 2000
_CHARS_BEFORE = 8
_CAPITAL = "".join(filter(str.isupper, map(chr, (*range(0x590), *range(0x1E00, 0x2000)))))
_LETTER = r"[^\W\d_]"
_INITIALS = rf"[{_CAPITAL}]\.(?:-?[{_CAPITAL}]\.){{0,3}}+(?!-?[{_CAPITAL}]\.)"
# A word has a capital, and not only capitals. The apostrophe of O'Brien is part of it, that of Tom's is not.
_WORD = (
    rf"(?!(?:[{_CAPITAL}]|['’-](?=[{_CAPITAL}])){{1,41}}+(?!{_LETTER}))"
    rf"[{_CAPITAL}](?:{_LETTER}|['’-](?=[{_CAPITAL}])){{1,40}}+(?!\w|[./@:]\w|-\d)"
)
_TITLE = (
    r"(?:Dr|Mr|Mrs|Ms|Miss|Prof|Frau|Herrn?|Familie|Mme|Madame|Monsieur|Sra?|Señora?|Signora?|Dott|Mevrouw|Meneer)"
    r"\.? "
)
_PARTICLE = (
    r"(?:(?:van|von)(?: (?:der|den|dem|de|het|'t))?|de(?: (?:la|las|los|le))?"
    r"|zu|di|da|della|dei|degli|dos|af|av|ter|ten|bin|ibn) "
)
_name = re.compile(
    rf"(?<![\w.@/#\\-])(?P<title>{_TITLE}){{0,3}}+(?:(?:van|von) (?:der|den|dem|de|het|'t) )?"
    rf"(?:(?:{_INITIALS} ?|(?!{_TITLE}){_WORD}(?:['’]s)? (?:{_PARTICLE})?)){{0,6}}(?!{_TITLE}){_WORD}"
)
_OPENING = " \t\"'`“„«»‘‚([{*-–—•"
_SENTENCE_ENDS = ".!?…\n\r"


def find_names(text: str) -> list[str]:
    """Return names of people and places in a text, each once, at most `_MAX_NAMES`.

    A single word at the start of a sentence is no name, because every first word has a capital. In German
    text no single word is a name.
    """
    found: dict[str, None] = {}
    for name in _iterate_names(text):
        found[name] = None
        if len(found) == _MAX_NAMES:
            break
    return list(found)


def _iterate_names(text: str) -> Iterator[str]:
    language = choose_language(split_words(text[:_LANGUAGE_CHARS]), None)
    # In German every noun begins with a capital, so that only a title or a second word tells a name.
    is_german = language == "de"
    for match in iterate_matches(_name, text):
        name, start = match.group(), match.start()
        if match["title"]:
            yield name
            continue
        before = text[max(0, start - _CHARS_BEFORE) : start].rstrip(_OPENING)
        follows_word = bool(before) and before[-1].isalnum()
        rest = name if follows_word and not is_german else _strip_common_words(name, language)
        starts_sentence = rest == name and (not before or before[-1] in _SENTENCE_ENDS)
        if rest and (" " in rest or not (starts_sentence or is_german)):
            yield rest


def _strip_common_words(name: str, language: str) -> str:
    """Remove the first words of a name that are common words: "Is" of "Is Tom"."""
    words = name.split()
    while words and name[0].isupper() and _is_common(words[0], language):
        del words[0]
    return " ".join(words)


def _is_common(word: str, language: str) -> bool:
    lexicon = load_recall_lexicon(language)
    normal = normalize(word.removesuffix("'s").removesuffix("’s"))
    return normal in lexicon.stop or normal in lexicon.common
