"""Recall ranks evicted turns by the words that they share with a question."""

from datetime import UTC, datetime, timedelta

import pytest

from sash.engine.recall import RecalledTurn, find_missing, group_turns, rank, render
from sash.memory.words import extract_stems
from sash.ports.store import StoredMessage
from sash.values.messages import MessageEntry

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)


def stored(position, role="user", text="words", at=NOON, **fields):
    message = MessageEntry(role, text, timestamp=at, **fields)
    return StoredMessage("s", position, message, in_window=False)


def talk(count, minutes=1):
    """Turns of a question and an answer."""
    return [
        stored(n + 1, "assistant" if n % 2 else "user", at=NOON + timedelta(minutes=minutes * n))
        for n in range(2 * count)
    ]


def test_words_lose_their_endings_and_common_ones_are_left_out():
    assert extract_stems("What did I say about the kitchen lights, please?") == ["kitch", "ligh"]
    assert extract_stems("E-500 at port 8123") == ["500", "port", "8123"]
    assert extract_stems("is it on?") == []
    assert extract_stems("Können wir über die Küche für später reden?") == ["kuch", "spat", "rede"]
    assert len(extract_stems(" ".join(f"word{n}" for n in range(99)))) == 12


def test_only_what_the_window_lacks_is_missing():
    assert find_missing(["kitch", "boil"], ["the kitchen is warm"]) == ["boil"]
    assert find_missing([], ["x"]) == []


def test_a_turn_takes_part_of_the_scores_around_it():
    turns = rank(talk(5), {5: 1.0})
    scores = {turn.key: turn.score for turn in turns}
    bonus = 0.5 * (1.0 + 0.6 + 0.3) / 3
    assert scores == pytest.approx({5: 1.0 + bonus, 7: 0.6 + bonus, 3: 0.3 + bonus})
    assert [turn.key for turn in turns] == [5, 7, 3]


def test_a_turn_has_the_scores_of_all_its_messages():
    [best, *_] = rank(talk(3), {3: 1.0, 4: 1.0, 1: 1.5})
    assert best.key == 3


def test_a_stretch_of_good_turns_lifts_them_all():
    near = talk(3)
    far = [
        stored(m.position + 6, m.message.role, at=m.message.timestamp + timedelta(days=1)) for m in talk(3)
    ]
    turns = rank([*near, *far], {1: 1.0, 3: 1.0, 5: 1.0, 11: 1.4})
    assert next(turn.key for turn in turns) in (3, 5)
    alone = rank([*near, *far], {1: 1.0, 11: 1.4})
    assert alone[0].key == 11


def test_what_is_not_adjacent_lends_nothing():
    messages = [m for m in talk(5) if m.position not in (5, 6)]
    turns = {turn.key: turn.score for turn in rank(messages, {3: 1.0})}
    assert set(turns) == {1, 3}


def test_turns_begin_with_a_question_or_behind_a_gap():
    messages = [stored(1), stored(2, "assistant"), stored(5, "assistant"), stored(6)]
    assert [[m.position for m in turn] for turn in group_turns(messages)] == [[1, 2], [5], [6]]


def test_what_is_shown_has_its_date_and_fits():
    turns = [
        RecalledTurn((stored(9, text="the newer one"), stored(10, "assistant", "yes")), 2.0),
        RecalledTurn((stored(1, text="the older one"), stored(2, "assistant", "no")), 1.0),
        RecalledTurn((stored(5, text="too long " * 99),), 0.5),
    ]
    text, shown = render(turns, ["one"], len, 120, UTC)
    assert [turn.key for turn in shown] == [1, 9]
    assert text == (
        "[2026-05-01 12:00]\nuser: the older one\nassistant: no\n"
        "[2026-05-01 12:00]\nuser: the newer one\nassistant: yes"
    )
    assert render(turns, [], len, 10) == ("", [])


def test_what_does_not_fit_is_cut_around_what_was_looked_for():
    long = RecalledTurn((stored(1, text="x" * 600 + " the needle " + "y" * 600),), 1.0)
    text, _ = render([long], ["needl"], len, 400)
    assert "the needle" in text
    assert len(text) <= 400
    accented = RecalledTurn((stored(1, text="x" * 600 + " im Café hinten " + "y" * 600),), 1.0)
    assert "im Café hinten" in render([accented], ["cafe"], len, 400)[0]


def test_what_tools_returned_then_is_not_told_again():
    turn = (
        stored(1, text="is it on?"),
        stored(2, "tool", "on", tool_call_id="c"),
        stored(3, "assistant", "yes"),
    )
    assert render([RecalledTurn(turn, 1.0)], [], len, 99, UTC)[0].splitlines()[1:] == [
        "user: is it on?",
        "assistant: yes",
    ]
