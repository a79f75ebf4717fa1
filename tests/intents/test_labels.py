"""Labels of a home whose names are also words for colours."""

import pytest

from sash.home.index import HomeIndex
from sash.intents.home_words import HomeWords
from sash.intents.sentence.reader import SentenceReader
from sash.intents.words.lexicon import load_lexicon
from sash.ports.home import Entity, Layout


@pytest.mark.parametrize(
    ("sentence", "colour"),
    [
        ("turn on the cosy lights", None),
        ("turn off everything labelled cosy", None),
        ("make the bed light cosy", "warm_white"),
    ],
)
def test_a_label_before_a_kind_is_no_colour(sentence, colour):
    entities = (Entity("light.bed", "Bed light", labels=("cosy",)),)
    index = HomeIndex(Layout("Home", entities=entities, labels={"cosy": "Cosy"}), ())
    lexicon = load_lexicon("en")
    reader = SentenceReader(lexicon, HomeWords(index, [lexicon]))
    [clause] = reader.read_clauses(reader.read(sentence))
    assert clause.amount.colour == colour
    assert any("label:cosy" in word.keys for word in clause.words) is (colour is None)
