"""A hostile text never meets a pattern whose time grows faster than the text."""

import ast
import importlib
import pkgutil
import re
import time
from dataclasses import fields, is_dataclass
from pathlib import Path
from re import _constants as op
from re import _parser

import pytest

import sash
from sash.engine.redaction import MARK, redact

SMALL, LARGE, MAX_RATIO = 10_000, 100_000, 25
# A pattern that needs less CPU time for the large text is fast enough.
FAST_S = 0.02
UNITS = [
    "a",
    " ",
    "-",
    "1",
    "'",
    '"',
    "\n",
    "\\",
    "a ",
    "a-",
    "a.",
    "a@",
    "aA1",
    "?",
    "漢",
    "eyJaaaaaaaa-",
    "://a:",
]


def find_patterns():
    """Return all compiled patterns of the program's modules by name."""
    found = {}
    for info in pkgutil.walk_packages(sash.__path__, "sash."):
        if not info.name.endswith("__main__"):
            module = importlib.import_module(info.name)
            for name, value in vars(module).items():
                for n, pattern in enumerate(_list_patterns(value, depth=3)):
                    found.setdefault(pattern, f"{info.name}.{name}[{n}]")
    return {name: pattern for pattern, name in found.items()}


def _list_patterns(value, depth):
    if isinstance(value, re.Pattern):
        yield value
    elif depth and isinstance(value, tuple | list | frozenset):
        for item in value:
            yield from _list_patterns(item, depth - 1)
    elif depth and isinstance(value, dict):
        yield from _list_patterns(list(value.values()), depth)
    elif depth and is_dataclass(value) and not isinstance(value, type):
        for field in fields(value):
            yield from _list_patterns(getattr(value, field.name, None), depth - 1)


PATTERNS = find_patterns()


def sample(pattern):
    """Return texts that almost match a pattern: one for each of its alternatives."""
    return {text for text in _samples(_parser.parse(pattern.pattern, pattern.flags)) if text}


def _samples(items):
    """Return one text for each alternative of a parsed pattern. Other parts get their first text."""
    texts = [""]
    for kind, value in items:
        choices = _choices(kind, value)
        texts = [text + choices[0] for text in texts] + [texts[0] + other for other in choices[1:]]
    return texts


def _choices(kind, value):
    if kind is op.LITERAL:
        return [chr(value)]
    if kind is op.BRANCH:
        return [text for branch in value[1] for text in _samples(branch)]
    if kind is op.SUBPATTERN:
        return _samples(value[3])
    if kind is op.ATOMIC_GROUP:
        return _samples(value)
    if kind in (op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT):
        return [text * max(1, min(value[0], 40)) for text in _samples(value[2])]
    if kind is op.IN:
        first, *_ = value
        return [chr(first[1]) if first[0] is op.LITERAL else " a"[first[1] is not op.CATEGORY_SPACE]]
    return ["a"] if kind in (op.ANY, op.NOT_LITERAL) else [""]


def measure(pattern, unit, size):
    """Return the CPU time to find all matches of a pattern in a text of repeated units."""
    text = (unit * (size // len(unit) + 1))[:size] + "\0"
    start = time.thread_time()
    for _ in pattern.finditer(text):
        pass
    pattern.fullmatch(text)
    return time.thread_time() - start


def test_all_patterns_are_compiled_once_where_this_test_finds_them():
    calls = {"search", "match", "fullmatch", "sub", "subn", "split", "findall", "finditer"}
    found = [
        f"{path}:{node.lineno}"
        for path in Path(sash.__path__[0]).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and node.attr in calls and isinstance(node.value, ast.Name)
        if node.value.id == "re"
    ]
    assert found == []
    assert len(PATTERNS) > 60


@pytest.mark.parametrize("name", sorted(PATTERNS))
def test_the_time_of_a_pattern_grows_with_the_text(name):
    pattern = PATTERNS[name]
    samples = sorted(sample(pattern), key=len)[-12:]
    units = [*UNITS, *samples, *(f"{text} " for text in samples)]
    slowest = sorted(units, key=lambda unit: measure(pattern, unit, SMALL))[-2:]
    for unit in slowest:
        small = min(measure(pattern, unit, SMALL) for _ in range(3))
        assert small < 0.5, f"{SMALL} characters of {unit!r} take {small:.1f} s"
        large = measure(pattern, unit, LARGE)
        for _ in range(10):  # A busy machine delays single measurements.
            if large <= max(FAST_S, MAX_RATIO * small):
                break
            large = min(large, measure(pattern, unit, LARGE))
        assert large <= max(FAST_S, MAX_RATIO * small), f"{unit!r}: {large / small:.0f} times for ten times"


@pytest.mark.parametrize("before", ["", "token-", "(", "a b-"])
def test_a_web_token_is_redacted(before):
    token = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N"
    clean = redact(f"see {before}{token} there")
    assert MARK in clean
    assert "eyJ" not in clean


@pytest.mark.parametrize("length", [30_000, 32_000, 32_768, 40_000, 65_000, 65_536, 200_000])
def test_a_secret_is_found_at_any_place_of_a_long_text(length):
    secret = "password: hunter2hunter2"
    text = "x " * (length // 2) + secret + " y" * 40_000
    assert redact(text) == text.replace("hunter2hunter2", MARK)
    assert redact("sk-" + "a" * length + " " + secret) == f"{MARK} password: {MARK}"
