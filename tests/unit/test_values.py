"""Errors, ids, clocks and options."""

import json
import pickle
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

import sash
from sash import AgentConfig, SashError, errors
from sash.testing import FakeClock, ScriptedModel
from sash.values.codec import decode, encode
from sash.values.ids import Ulids, new_id
from sash.values.sessions import Session


def all_errors(kind=SashError):
    return [kind, *(found for child in kind.__subclasses__() for found in all_errors(child))]


def test_every_error_has_a_code_of_its_own():
    codes = [kind.code for kind in all_errors() if "code" in vars(kind)]
    assert len(set(codes)) == len(codes)


def test_an_error_carries_its_data_and_survives_pickling():
    error = pickle.loads(pickle.dumps(errors.MessageTooLarge("too large", size=5, limit=3)))
    assert (error.code, error.message, error.size, error.limit) == ("message_too_large", "too large", 5, 3)
    with pytest.raises(AttributeError):
        _ = error.other


@given(st.lists(st.floats(-1e6, 1e6, allow_nan=False), max_size=50))
def test_ids_grow_even_when_the_clock_steps_back(steps):
    clock, ulids = FakeClock(), Ulids()
    made = []
    for step in steps:
        clock.advance(step)
        made.append(ulids.new(clock.now()))
    assert made == sorted(set(made))


def test_ids_grow_past_the_digits_that_are_written_once():
    clock, ulids = FakeClock(), Ulids()
    made = [ulids.new(clock.now())]
    ulids._low = (1 << 20) - 2
    made += [ulids.new(clock.now()) for _ in range(4)]
    assert made == sorted(set(made))


def test_ids_go_on_behind_those_of_an_earlier_process():
    """Also within one millisecond, when this process has made one already, and when the clock was set back."""
    clock, earlier = FakeClock(), Ulids()
    for _ in range(20):  # The random parts of two processes may be in any order.
        for set_back in (0, 86_400):
            last, ulids = earlier.new(clock.now()), Ulids()
            at = clock.now() - timedelta(seconds=set_back)
            mine = ulids.new(at)
            behind = [earlier.new(clock.now()) for _ in range(3)]
            ulids.continue_after(last)
            assert (first := ulids.new(at)) > max(last, mine)
            assert first not in behind, "those that nobody knows of are not given again"
            ulids.continue_after(mine)
            assert ulids.new(at) > max(last, mine)


def test_an_id_is_a_ulid_of_its_moment():
    id = Ulids().new(datetime(2016, 7, 30, 23, 54, 10, 259000, tzinfo=UTC))
    assert len(id) == 26
    assert id.startswith("01ARZ3NDEK")
    assert set(id) <= set("0123456789ABCDEFGHJKMNPQRSTVWXYZ")
    assert new_id() < new_id()


def test_a_whole_number_from_a_form_is_taken():
    assert AgentConfig.from_dict({"max_history_turns": 5.0}).max_history_turns == 5


def test_home_assistant_may_pass_hass_before_the_options():
    data = {"sliding_window_max_tokens": 6000, "api_key": "x"}
    assert AgentConfig.from_dict(object(), data) == AgentConfig.from_dict(data)
    assert AgentConfig.from_dict(object(), data).sliding_window_max_tokens == 6000


def test_our_classes_satisfy_the_seeds_interfaces():
    assert isinstance(sash.ConversationMemoryManager(), sash.IMemoryManager)
    assert isinstance(sash.MemoryStore(), sash.IStateManager)
    assert isinstance(ScriptedModel("ok"), sash.ILLMClient)
    assert not isinstance(sash.MemoryStore(), sash.IMemoryManager | sash.ILLMClient)


def test_the_defaults_are_the_seeds_():
    assert sash.RECOMMENDED_SLIDING_WINDOW_MAX_TOKENS == 4000
    assert AgentConfig.from_dict({}) == AgentConfig(
        sliding_window_enable=True,
        sliding_window_max_tokens=4000,
        sliding_window_preserve_system=True,
        max_history_turns=20,
        auto_create_conversation_id=False,
    )


@pytest.mark.parametrize(
    "data",
    [
        {"sliding_window_max_tokens": 0},
        {"sliding_window_max_tokens": "4000"},
        {"sliding_window_max_tokens": True},
        {"sliding_window_enable": "yes"},
        {"sliding_window_enable": 1},
        {"max_history_turns": -1},
        {"max_history_turns": None},
        {"max_history_turns": 2.5},
        [],
        None,
    ],
)
def test_a_wrong_option_is_named(data):
    with pytest.raises(SashError) as error:
        AgentConfig.from_dict(data)
    assert error.value.code == "invalid_config"
    assert not isinstance(data, dict) or next(iter(data)) in error.value.message


def test_a_session_of_the_older_form_keeps_its_area_and_its_counts():
    now = datetime(2026, 1, 1, tzinfo=UTC)
    session = Session("id", "ann", now, now, context={"mine": 1})
    older = json.loads(encode(session))
    for name in ("area", "is_one_question", "turns_before"):
        del older[name]
    older["context"] |= {"area": "kitchen", "one_question": True, "turns_before": 3}
    expected = replace(session, area="kitchen", is_one_question=True, turns_before=3)
    assert decode(Session, json.dumps(older)) == expected
