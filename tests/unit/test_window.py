"""The window's rules, one sentence each, and the properties that hold for any conversation."""

from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sash.errors import DuplicateMessage, InvalidLimit, OrphanToolResult
from sash.memory.window import Eviction, Limits, Window
from sash.values.messages import MessageEntry


def message(role="user", tokens=10, *tags, calls=(), answers=None, id=None) -> MessageEntry:
    tool_calls = tuple(
        {"id": call, "type": "function", "function": {"name": "f", "arguments": "{}"}} for call in calls
    )
    named = {"id": id} if id else {}
    return MessageEntry(
        role,
        f"{role} {id}",
        token_count=tokens,
        tags=frozenset(tags),
        tool_calls=tool_calls,
        tool_call_id=answers,
        **named,
    )


def fill(window: Window, *messages: MessageEntry) -> list[Eviction]:
    return [eviction for message in messages for eviction in window.add(message)]


def ids(messages) -> list[str]:
    return [m.id for m in messages]


def test_the_oldest_message_goes_first():
    window = Window(Limits(max_tokens=30))
    evicted = fill(window, *(message(id=f"m{n}") for n in range(5)))
    assert ids(window) == ["m2", "m3", "m4"]
    assert [(e.message.id, e.reason) for e in evicted] == [("m0", "max_tokens"), ("m1", "max_tokens")]


def test_a_user_message_and_its_answer_leave_one_after_the_other():
    window = Window(Limits(max_tokens=30))
    fill(window, message(id="u1"), message("assistant", id="a1"), message(id="u2"))
    assert ids(e.message for e in window.add(message("assistant", id="a2"))) == ["u1"]
    assert ids(window) == ["a1", "u2", "a2"]


def test_system_messages_are_preserved_unless_told_otherwise():
    conversation = [message("system", id="s"), *(message(id=f"m{n}") for n in range(4))]
    kept, plain = Window(Limits(max_tokens=30)), Window(Limits(max_tokens=30, preserve_system=False))
    fill(kept, *conversation)
    fill(plain, *conversation)
    assert ids(kept) == ["s", "m2", "m3"]
    assert ids(plain) == ["m1", "m2", "m3"]


def test_ephemeral_goes_before_ordinary_and_important_after_it():
    window = Window(Limits(max_tokens=30))
    first = [
        message("user", 10, "important", id="i"),
        message(id="o"),
        message("user", 10, "ephemeral", id="e"),
    ]
    fill(window, *first)
    gone = [ids(e.message for e in window.add(message(id=f"n{n}"))) for n in range(4)]
    assert gone == [["e"], ["o"], ["n0"], ["n1"]]
    assert ids(window) == ["i", "n2", "n3"]
    window.add(message("user", 30, id="large"))
    assert ids(window) == ["large"]


def test_pinned_is_never_evicted():
    window = Window(Limits(max_tokens=20, max_turns=2))
    fill(window, message("user", 10, "pinned", id="p"), *(message(id=f"m{n}") for n in range(9)))
    assert ids(window) == ["p", "m8"]


def test_a_pinned_answer_keeps_its_question():
    window = Window(Limits(max_tokens=None, max_turns=1))
    fill(window, message(id="q1"), message("assistant", 10, "pinned", id="a1"), message("assistant", id="b1"))
    window.add(message(id="q2"))
    assert ids(window) == ["q1", "a1", "q2"]


def test_a_tag_on_the_result_speaks_for_the_whole_call():
    window = Window(Limits(max_tokens=50))
    fill(
        window,
        message(id="u1"),
        message(id="u2"),
        message("assistant", calls=["c"], id="call"),
        message("tool", 10, "ephemeral", answers="c", id="result"),
        message(id="u3"),
    )
    assert ids(e.message for e in window.add(message(id="u4"))) == ["call", "result"]


def test_a_call_and_its_results_leave_together():
    window = Window(Limits(max_tokens=50))
    fill(
        window,
        message(id="u1"),
        message("assistant", calls=["x", "y"], id="call"),
        message("tool", answers="y", id="ry"),
        message("tool", answers="x", id="rx"),
    )
    assert ids(e.message for e in window.add(message(id="u2", tokens=20))) == ["u1"]
    assert ids(e.message for e in window.add(message(id="u3", tokens=1))) == ["call", "ry", "rx"]


def test_the_turn_being_added_is_never_evicted():
    window = Window(Limits(max_tokens=25))
    fill(window, message(id="old"), message(id="u"), *(message("assistant", id=f"a{n}") for n in range(4)))
    assert ids(window) == ["u", "a0", "a1", "a2", "a3"]
    assert window.over_budget
    window.add(message(id="next"))
    assert ids(window) == ["a3", "next"]
    assert not window.over_budget


def test_a_message_larger_than_the_limit_is_kept_and_reported():
    window = Window(Limits(max_tokens=10))
    fill(window, message(id="u"), message(id="large", tokens=99))
    assert ids(window) == ["large"]
    assert window.over_budget


def test_a_window_never_opens_on_an_assistant_or_tool_message_after_an_eviction_by_turns():
    window = Window(Limits(max_tokens=None, max_turns=2))
    fill(window, message("assistant", id="greeting"))
    for n in range(5):
        fill(
            window,
            message(id=f"u{n}"),
            message("assistant", calls=["c"], id=f"c{n}"),
            message("tool", answers="c", id=f"r{n}"),
            message("assistant", id=f"a{n}"),
        )
        assert n < 2 or next(iter(window)).role == "user"
    assert window.turns == 2
    assert ids(window)[0] == "u3"


def test_a_greeting_and_the_rest_of_a_turn_leave_with_the_first_eviction_by_turns():
    window = Window(Limits(max_tokens=None, max_turns=1))
    fill(window, message("assistant", 10, "important", id="greeting"), message(id="u1"), message(id="u2"))
    assert ids(window) == ["u2"]
    both = Window(Limits(max_tokens=40, max_turns=3))
    fill(both, message(id="u0", tokens=30), message("assistant", 10, "important", id="a0"))
    fill(both, *(message(id=f"u{n}", tokens=9) for n in range(1, 5)))
    assert ids(both) == ["u2", "u3", "u4"]


def test_an_important_turn_outlives_ordinary_ones():
    window = Window(Limits(max_tokens=None, max_turns=2))
    fill(window, message(id="u0"), message("assistant", 10, "important", id="a0"))
    fill(window, *(message(id=f"u{n}") for n in range(1, 4)))
    assert ids(window) == ["u0", "a0", "u3"]


def test_a_turn_is_as_important_as_its_most_important_message():
    window = Window(Limits(max_tokens=None, max_turns=2))
    fill(window, message("user", 10, "important", id="u0"), message("assistant", id="a0"))
    fill(window, *(message(id=f"u{n}") for n in range(1, 4)))
    assert ids(window) == ["u0", "a0", "u3"]


def test_no_limit_keeps_everything():
    window = Window(Limits(max_tokens=None))
    assert fill(window, *(message(tokens=10**6) for _ in range(50))) == []
    assert len(window) == 50
    assert not window.over_budget


def test_the_low_water_mark_cuts_deeper_and_more_rarely():
    window = Window(Limits(max_tokens=100, evict_to=0.5))
    cuts = [len(window.add(message())) for _ in range(31)]
    assert [n for n, cut in enumerate(cuts) if cut] == [10, 16, 22, 28]
    assert set(cuts) == {0, 6}
    turns = Window(Limits(max_tokens=None, max_turns=8, evict_to=0.5))
    assert [len(turns.add(message())) for _ in range(10)] == [0] * 8 + [5, 0]


def test_an_unanswered_call_is_dropped_when_the_conversation_moves_on():
    window = Window(Limits())
    fill(
        window,
        message(id="u"),
        message("assistant", calls=["x", "y"], id="call"),
        message("tool", answers="x", id="rx"),
    )
    evicted = window.add(message(id="u2"))
    assert [(e.message.id, e.reason) for e in evicted] == [("call", "unanswered"), ("rx", "unanswered")]
    assert ids(window) == ["u", "u2"]
    assert window.tokens == 20


@pytest.mark.parametrize("answers", ["unknown", "c"])
def test_a_tool_result_without_its_call_changes_nothing(answers):
    window = Window(Limits())
    fill(window, message(id="u"), message("assistant", calls=["c"], id="call"), message("tool", answers="c"))
    before = window.snapshot("x")
    with pytest.raises(OrphanToolResult) as error:
        window.add(message("tool", answers=answers))
    assert error.value.code == "orphan_tool_result"
    assert error.value.tool_call_id == answers
    assert window.snapshot("x") == before


def test_the_same_message_twice_is_refused():
    window = Window(Limits())
    window.add(message(id="m"))
    with pytest.raises(DuplicateMessage):
        window.add(message(id="m"))
    assert len(window) == 1


@pytest.mark.parametrize(
    "limits",
    [
        {"max_tokens": 0},
        {"max_tokens": -1},
        {"max_tokens": 1.5},
        {"max_tokens": "4000"},
        {"max_tokens": True},
        {"max_turns": 0},
        {"evict_to": 0},
        {"evict_to": 1.01},
        {"evict_to": float("nan")},
        {"evict_to": "1"},
    ],
)
def test_an_impossible_limit_is_refused(limits):
    with pytest.raises(InvalidLimit):
        Limits(**limits)


@dataclass
class Spec:
    """The rules once more, as slowly and plainly as possible: every decision looks at the whole list."""

    limits: Limits
    rows: list[tuple[MessageEntry, int, int]] = field(default_factory=list)  # message, turn, group
    turn: int = 0
    group: int = 0
    open_calls: set[str] = field(default_factory=set)

    def add(self, new: MessageEntry) -> list[tuple[str, str]]:
        gone: list[tuple[str, str]] = []
        if new.role == "tool":
            self.open_calls.remove(new.tool_call_id)
        else:
            if self.open_calls:
                gone += self.drop({self.group}, "unanswered")
            self.open_calls = {call["id"] for call in new.tool_calls}
            self.group += 1
            self.turn += new.role == "user"
        self.rows.append((new, self.turn, self.group))
        by_turns, too_large = self.by_turns(), self.too_large()
        gone += by_turns + self.by_tokens()
        opens_on_a_question = by_turns or (too_large and self.limits.evict_to < 1)
        while opens_on_a_question and (group := self.leading_answer()) is not None:
            gone += self.drop({group}, "max_turns" if by_turns else "max_tokens")
        return gone

    def too_large(self) -> bool:
        return self.limits.max_tokens is not None and self.tokens() > self.limits.max_tokens

    def leading_answer(self) -> int | None:
        preserved = self.limits.preserve_system
        rows = [row for row in self.rows if not (preserved and row[0].role == "system")]
        if not rows:
            return None
        first, turn, group = rows[0]
        answers = first.role in ("assistant", "tool") and turn < self.turn and self.rank(group) < 3
        return group if answers else None

    def by_turns(self):
        gone, limit = [], self.limits.max_turns
        if limit is not None and self.turns() > limit:
            while self.turns() > limit * self.limits.evict_to and (old := self.evictable()):
                rank = {t: max(r for r, t2, _ in old if t2 == t) for _, t, _ in old}
                worst = min(rank, key=lambda t: (rank[t], t))
                gone += self.drop({g for _, t, g in old if t == worst}, "max_turns")
        return gone

    def by_tokens(self):
        gone, limit = [], self.limits.max_tokens
        if limit is not None and self.tokens() > limit:
            while self.tokens() > limit * self.limits.evict_to and (old := self.evictable()):
                worst = min(old, key=lambda item: (item[0], item[2]))[2]
                gone += self.drop({worst}, "max_tokens")
        return gone

    def drop(self, groups, reason):
        gone = [row for row in self.rows if row[2] in groups]
        self.rows = [row for row in self.rows if row[2] not in groups]
        return [(row[0].id, reason) for row in gone]

    def evictable(self):
        return sorted({(self.rank(g), t, g) for _, t, g in self.rows if t < self.turn and self.rank(g) < 3})

    def rank(self, group: int) -> int:
        messages = [m for m, _, g in self.rows if g == group]
        tags = {tag for m in messages for tag in m.tags}
        if "pinned" in tags or (messages[0].role == "system" and self.limits.preserve_system):
            return 3
        if messages[0].role == "user" and self.has_pinned_answer(group):
            return 3
        return 2 if "important" in tags else 0 if "ephemeral" in tags else 1

    def has_pinned_answer(self, question: int) -> bool:
        turn = next(t for _, t, g in self.rows if g == question)
        calls = {g for m, t, g in self.rows if t == turn and m.role == "assistant"}
        return any("pinned" in m.tags for m, _, g in self.rows if g in calls)

    def turns(self) -> int:
        counted = {t for _, t, g in self.rows if t and self.rank(g) < 3}
        return len(counted | {self.turn} - {0})

    def tokens(self) -> int:
        return sum(m.token_count for m, _, _ in self.rows)


tags = st.sampled_from(
    [(), (), (), (), ("ephemeral",), ("important",), ("pinned",), ("ephemeral", "important")]
)
tokens = st.integers(0, 40)
plain = st.tuples(st.sampled_from(["user", "user", "assistant", "system"]), tokens, tags)
called = st.tuples(st.lists(st.tuples(tokens, tags), min_size=1, max_size=3), st.integers(0, 3), tokens, tags)


@st.composite
def conversations(draw) -> list[MessageEntry]:
    messages: list[MessageEntry] = []
    for step in draw(st.lists(st.one_of(plain, plain, called), max_size=40)):
        if isinstance(step[0], str):
            role, size, marks = step
            messages.append(message(role, size, *marks, id=f"m{len(messages):03}"))
            continue
        results, answered, size, marks = step
        calls = [f"c{len(messages)}.{n}" for n in range(len(results))]
        messages.append(message("assistant", size, *marks, calls=calls, id=f"m{len(messages):03}"))
        for call, (result_size, result_marks) in list(zip(calls, results, strict=True))[:answered]:
            messages.append(
                message("tool", result_size, *result_marks, answers=call, id=f"m{len(messages):03}")
            )
    return messages


shapes = st.sampled_from([(True, False), (False, True), (True, True), (False, False)])


@st.composite
def some_limits(draw) -> Limits:
    by_tokens, by_turns = draw(shapes)
    return Limits(
        max_tokens=draw(st.integers(1, 150)) if by_tokens else None,
        max_turns=draw(st.integers(1, 5)) if by_turns else None,
        evict_to=draw(st.sampled_from([1.0, 1.0, 0.75, 0.5, 0.1])),
        preserve_system=draw(st.booleans()),
    )


limits = some_limits()


@given(limits, conversations())
@settings(max_examples=600, deadline=None)
def test_the_window_follows_a_plain_model_of_its_rules(limits, conversation):
    window, spec = Window(limits), Spec(limits)
    for new in conversation:
        evicted = [(e.message.id, e.reason) for e in window.add(new)]
        assert evicted == spec.add(new)
        assert ids(window) == [m.id for m, _, _ in spec.rows]
        assert window.turns == spec.turns()


@given(limits, conversations())
@settings(max_examples=200, deadline=None)
def test_invariants_of_every_window(limits, conversation):
    window = Window(limits)
    seen: dict[str, MessageEntry] = {}
    evicted: set[str] = set()
    for new in conversation:
        gone = window.add(new)
        seen[new.id] = new
        kept = list(window)

        assert window.tokens == sum(m.token_count for m in kept), "current_tokens equals a recount"
        assert window.over_budget == (limits.max_tokens is not None and window.tokens > limits.max_tokens)
        assert all(m is seen[m.id] for m in kept), "kept messages are the very ones that came in"
        assert ids(kept) == sorted(ids(kept)), "order is kept"
        evicted |= {e.message.id for e in gone}
        assert evicted.isdisjoint(ids(kept)), "what left does not come back"
        assert evicted | set(ids(kept)) == set(seen), "nothing is lost without a report"
        assert window.evicted_count == len(evicted)

        called = {call["id"] for m in kept for call in m.tool_calls}
        answered = {m.tool_call_id for m in kept if m.role == "tool"}
        assert answered <= called, "no result without its call"
        last = max((n for n, m in enumerate(kept) if m.role != "tool"), default=0)
        pending = {call["id"] for call in kept[last].tool_calls}
        assert called - pending <= answered, "no call without its result"
        if limits.preserve_system:
            assert {m.id for m in seen.values() if m.role == "system"} <= set(ids(kept))


@given(limits, st.lists(tokens, max_size=60))
@settings(max_examples=100, deadline=None)
def test_without_tags_the_window_is_the_end_of_the_conversation(limits, sizes):
    window = Window(limits)
    conversation = [message(tokens=size, id=f"m{n:03}") for n, size in enumerate(sizes)]
    fill(window, *conversation)
    assert list(window) == conversation[len(conversation) - len(window) :]


@given(limits, conversations(), st.integers(0, 60))
@settings(max_examples=300, deadline=None)
def test_a_restored_window_behaves_like_the_original(limits, conversation, at):
    window = Window(limits)
    fill(window, *conversation[:at])
    restored = Window.restore(window.snapshot("x"))
    assert list(restored) == list(window)
    assert restored.turns == window.turns
    for new in conversation[at:]:
        assert restored.add(new) == window.add(new)
    assert restored.snapshot("x") == window.snapshot("x")


@given(limits, conversations())
@settings(max_examples=300, deadline=None)
def test_the_preview_of_a_cut_is_the_next_cut_of_small_turns(limits, conversation):
    """The turns until then have no tokens, except the last one, which passes the limit by one token."""
    window = Window(limits)
    fill(window, *conversation)
    before, kept = window.snapshot("x"), ids(window)
    expected = [eviction.message.id for eviction in window.preview_cut()]
    assert window.snapshot("x") == before, "a preview changes nothing"
    if limits.max_tokens is not None:
        window.limits = replace(limits, max_turns=None)
        sizes = [max(0, limits.max_tokens - window.tokens) + 1]
    else:
        sizes = [0] * max(0, (limits.max_turns or 0) + 1 - window.turns)
    evicted = fill(window, *(message(tokens=size) for size in sizes))
    cut = [each.message.id for each in evicted if each.reason != "unanswered"]
    assert [message_id for message_id in cut if message_id in kept] == expected
