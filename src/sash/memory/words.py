"""Words of a text in normal form, for searching and comparing."""

import re
import unicodedata
from itertools import filterfalse

MAX_KEYWORDS = 12

_word = re.compile(r"[^\W_]+")
# Letters of scripts that write no blanks between words: Thai to Khmer, and those of Chinese and Japanese.
_UNSPACED = (
    "\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\uff66-\uff9d\U00020000-\U0003ffff"
)
_run = re.compile(f"[{_UNSPACED}]+|[^{_UNSPACED}]+")
_unspaced = re.compile(f"[{_UNSPACED}]")
# The marks of these letters and of all before them are combining characters with a class of their own.
_LAST_LATIN = "\u036f"
_QUESTION_MARKS = ("?", "\uff1f", "\u061f")


def split_words(text: str) -> list[str]:
    """Return the words of a text in order, in lower case and without accents."""
    return _word.findall(normalize(text))


def split_index_words(text: str) -> list[str]:
    """Return the words of a text as an index stores them.

    Text without blanks between its words has all pairs of neighbouring letters instead, and its last letter.
    """
    return [part for word in split_words(text) for part in split_word(word)]


def split_word(word: str) -> list[str]:
    """Return the parts of a word in normal form that an index stores: the word, or pairs of its letters."""
    if word.isascii() or not is_unspaced(word):
        return [word]
    parts: list[str] = []
    for run in _run.findall(word):
        parts += [run[n : n + 2] for n in range(len(run))] if is_unspaced(run) else [run]
    return parts


def is_unspaced(word: str) -> bool:
    """Return True if a word has letters of a script that writes no blanks between words."""
    return _unspaced.search(word) is not None


def is_latin(text: str) -> bool:
    """Return True if a text has only Latin letters."""
    return text.isascii() or not any(sign > _LAST_LATIN and sign.isalpha() for sign in text)


def normalize(text: str) -> str:
    """Return a text in lower case and without accents, as a full-text index stores it."""
    lower = text.lower()
    if lower.isascii():
        return lower
    plain = "".join(filterfalse(unicodedata.combining, unicodedata.normalize("NFD", lower)))
    return plain if is_latin(plain) else "".join(filterfalse(_is_mark, plain))


def ends_with_question_mark(text: str) -> bool:
    return text.rstrip().endswith(_QUESTION_MARKS)


def has_question_mark(text: str) -> bool:
    return any(mark in text for mark in _QUESTION_MARKS)


def _is_mark(sign: str) -> bool:
    return unicodedata.category(sign).startswith("M")


# Words without a topic, in the languages of most homes: English, German, French, Spanish, Italian, Dutch.
_STOP_WORDS = frozenset(
    split_words("""
about after again also because been before being between both could does doing down each from have having
here into just like make more most much need only other over please same should show some such tell than
that their them then there these they this those through turn under until very want what when where which
while will with would your yours know think really thing things today still anything something everything
aber alle auch bitte dann dass deine denn dies diese dieser doch dort durch eine einen einer etwas haben
habe hatte heute hier ihre jetzt kann kannst können machen mache mehr mein meine mich nach nicht noch oder
ohne sehr sein seine sich sind über unter viel wann warum weil welche wenn werden wieder wird wurde avec
mais dans pour plus sont cette tout comme être fait peux quel quelle quoi votre nous vous para como pero
este esta esto cuando donde puede todo nuestra vuestra sono come questo questa cosa quando dove puoi tutto
voor maar niet deze wanneer waar kunnen alles all and any are ask but can did for get got had has her him
his how its let may new not now off old one our out own put say see set she the too two use was way who why
yes yet you als auf aus bei bin bis das dem den der des die dir ein für hat ich ihm ihn ihr ist man mal mit
mir nun nur sie und uns vom von vor war wem wen wer wie wir zum zur aux ces est ici les mes moi mon nos par
pas que qui ses son sur tes toi ton une con del ese eso fue hay las los mas muy por ser sin sus una uno che
chi col cui dal dei gli han hai lei lui mio nel non per più poi sei sta suo tra aan bij dan dat dit een hem
het hij hoe kan mag met nog ons ook tot uit van wat zij
    """)
)


def extract_keywords(text: str) -> list[str]:
    """Return the words of a text in order, without stop words and words of one or two letters."""
    return [word for word in split_words(text) if len(word) > 2 and word not in _STOP_WORDS]


def extract_stems(text: str) -> list[str]:
    """Return the stems of a text's keywords, in order, without duplicates, at most `MAX_KEYWORDS`."""
    return list(dict.fromkeys(map(stem, extract_keywords(text))))[:MAX_KEYWORDS]


def has_stems(text: str, stems: list[str]) -> bool:
    """Return True if a text has a word with each of these stems. False without stems."""
    words = split_words(text)
    return bool(stems) and all(any(word.startswith(stem) for word in words) for stem in stems)


def stem(word: str) -> str:
    """Remove 1 or 2 letters from the end of a word of more than 4. A word with digits is not changed."""
    return word[: max(4, len(word) - 2)] if word.isalpha() else word
