"""The encoding without tiktoken, which Home Assistant uses: it counts exactly as tiktoken does."""

import json
import sys
import time
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sash.memory import encodings
from sash.memory.byte_pair_encoding import BytePairEncoding
from sash.memory.encodings import load_encoding

REFERENCE = json.loads(Path(__file__).with_name("token_reference.json").read_text())
NAMES = ("cl100k_base", "o200k_base")


def load_without_tiktoken(name):
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "sash.memory.tiktoken_encoding", None)
        return encodings._load.__wrapped__(name)


IN_PYTHON = {name: load_without_tiktoken(name) for name in NAMES}


def test_it_is_used_if_tiktoken_is_missing():
    assert all(isinstance(encoding, BytePairEncoding) for encoding in IN_PYTHON.values())
    assert not isinstance(load_encoding("o200k_base"), BytePairEncoding)


@pytest.mark.parametrize("name", NAMES)
def test_it_counts_the_reference_texts_exactly(name):
    column = REFERENCE["columns"].index(name)
    wrong = [row[0] for row in REFERENCE["rows"] if IN_PYTHON[name].count(row[0]) != row[column]]
    assert wrong == []


@pytest.mark.parametrize("name", NAMES)
@given(text=st.text() | st.text("aAbB .,'\n\t0äß") | st.text("abcdefgh", min_size=30, max_size=300))
@example(text="\ud800 a lone surrogate")
@example(text="I'LL don't   \n\n  <|endoftext|> ")
def test_it_counts_any_text_as_tiktoken_does(name, text):
    assert IN_PYTHON[name].count(text) == load_encoding(name).count(text)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "text", ["ab" * 20_000, " " * 100_000, "x" * 50_000 + "é" * 10_000, "\n \n" * 20_000]
)
def test_long_pieces_count_as_tiktoken_counts_them(name, text):
    assert IN_PYTHON[name].count(text) == load_encoding(name).count(text)


def test_the_time_grows_with_the_length_and_not_with_its_square():
    def measure(size):
        started = time.process_time()
        IN_PYTHON["o200k_base"].count("qzxj" * size)
        return time.process_time() - started

    assert min(measure(20_000) for _ in range(3)) < 25 * min(measure(2_000) for _ in range(3))
