"""Tag questions: "the door is locked, isn't it?" asks whether the door is locked."""

from sash.intents.words.lexicon import Lexicon
from sash.intents.words.tokens import split_tokens

_SEPARATORS = frozenset({",", "?", "¿"})


def write_plain_question(text: str, lexicon: Lexicon) -> str:
    """Return a sentence without the tag at its end, as a question. Return other sentences unchanged.

    Some tags, such as "right", are ordinary words. They count only after a comma.
    """
    tokens = split_tokens(text)
    while tokens and tokens[-1].word in _SEPARATORS:
        tokens.pop()
    for count in range(min(lexicon.longest_tag, len(tokens) - 2), 0, -1):
        words = " ".join(token.word for token in tokens[-count:])
        before = tokens[-count - 1]
        is_apart = before.word in _SEPARATORS
        if words in lexicon.tags or (is_apart and words in lexicon.tags_after_comma):
            statement = text[: before.start if is_apart else before.end]
            return f"{statement.rstrip(' ,.?!¿')}?"
    return text
