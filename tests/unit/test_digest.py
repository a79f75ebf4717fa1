"""The digest: all identifiers verbatim, within the budget."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sash import SashError
from sash.memory.digest import build_digest, extend_digest
from sash.memory.tokens import TokenCounter
from sash.values.messages import MessageEntry

count_text = TokenCounter().count_text

SEED = (
    "I tried calling /api/users/123 and got error code 500. \n"
    "The exact error is: 'Connection timeout to db.example.com:5432'. \n"
    "Check config.py line 45."
)


def turn(question, answer="ok"):
    return [[MessageEntry("user", question), MessageEntry("assistant", answer)]]


def call(tool, arguments):
    function = {"name": tool, "arguments": arguments}
    return MessageEntry("assistant", "", tool_calls=[{"id": "c", "type": "function", "function": function}])


def test_the_seed_s_example_keeps_what_a_summary_would_lose():
    line = build_digest(turn(SEED), count_text)
    assert "\n" not in line
    for name in ("500", "/api/users/123", "db.example.com:5432", "config.py line 45"):
        assert name in line


def test_a_line_has_the_names_that_its_first_words_do_not_show():
    line = build_digest(
        turn("who called", "It was your sister Ada, from Leeds, about the party."), count_text
    )
    assert line == "- who called | Ada · Leeds"


def test_a_line_has_the_first_words_and_what_they_do_not_show():
    question = (
        "Please look at light.kitchen because it has been flickering since yesterday evening at 21:30 again"
    )
    assert build_digest(turn(question, "Voltage dips to 207 V at 21:30."), count_text) == (
        "- Please look at light.kitchen because it has been flickering since yesterday evening … | 21:30 · 207 V"
    )


def test_a_name_inside_a_longer_one_is_not_taken_for_shown():
    assert build_digest(turn("GET /api/users/123 works", "but /api/users/12 is gone"), count_text) == (
        "- GET /api/users/123 works | /api/users/12"
    )


def test_identifiers_that_are_too_long_are_only_counted():
    url = "https://example.com/" + "x" * 1400
    assert (
        build_digest(turn("Look", f"at {url} and sensor.power"), count_text) == "- Look | sensor.power · … +1"
    )


def test_the_arguments_of_tools_are_kept_and_their_names_are_not():
    call = {
        "id": "1",
        "type": "function",
        "function": {"name": "get_history", "arguments": '{"id": "sensor.power"}'},
    }
    messages = [MessageEntry("user", "why?"), MessageEntry("assistant", "", tool_calls=[call])]
    assert build_digest([messages], count_text) == "- why? | sensor.power"


def test_values_of_a_json_result_are_kept_and_keys_are_not():
    state = {
        "entity_id": "sensor.attic_battery",
        "state": "unavailable",
        "attributes": {"unit_of_measurement": "%", "level": 12, "path": "/dev/ttyUSB0"},
        "last_changed": "2026-11-02T04:00:00+00:00",
        "history": ["21.5", "22.0", "12:30"],
    }
    calls = [{"id": "c", "type": "function", "function": {"name": "get_states", "arguments": "{}"}}]
    turn = [
        MessageEntry("user", "why?"),
        MessageEntry("assistant", "", tool_calls=calls),
        MessageEntry("tool", json.dumps([state]), tool_call_id="c"),
        MessageEntry("assistant", "It failed with E-42."),
    ]
    assert build_digest([turn], count_text) == "- why? | sensor.attic_battery · /dev/ttyUSB0 · E-42"


def test_the_first_names_of_a_long_result_are_kept():
    result = json.dumps({"entities": [f"light.lamp_{n}" for n in range(99)]})
    calls = [{"id": "c", "type": "function", "function": {"name": "search", "arguments": "{}"}}]
    turn = [
        MessageEntry("user", "which?"),
        MessageEntry("assistant", "", tool_calls=calls),
        MessageEntry("tool", result, tool_call_id="c"),
    ]
    line = build_digest([turn], count_text)
    assert "light.lamp_0 " in line
    assert line.count("light.lamp") == 12


@pytest.mark.parametrize("arguments", ['{"hours": 24, "with_errors": true}', "{}", "[]", "null"])
def test_keys_of_arguments_without_texts_are_not_shown(arguments):
    assert (
        build_digest([[MessageEntry("user", "why?"), call("get_history", arguments)]], count_text) == "- why?"
    )


def test_arguments_that_are_not_json_are_kept():
    messages = [MessageEntry("user", "why?"), call("get_history", "sensor.power, 24 h")]
    assert build_digest([messages], count_text) == "- why? | sensor.power · 24 h"


def test_a_name_within_a_shown_identifier_or_name_is_not_repeated():
    answer = 'Try "The Name of the Rose" or ‘Max Havelaar’ by J. R. R. Tolkien; J.R.R. Tolkien, or Ada.'
    assert build_digest(turn("what can I read?", answer), count_text) == (
        '- what can I read? | "The Name of the Rose" · ‘Max Havelaar’ · J.R.R. Tolkien · Ada'
    )
    assert build_digest(turn('wir sehen heute "Die Welle"', "Gern: Die Welle"), count_text) == (
        '- wir sehen heute "Die Welle"'
    )


def test_a_name_within_a_longer_word_is_still_shown():
    assert build_digest(turn("Tomorrow?", "Yes, with Tom"), count_text) == "- Tomorrow? | Tom"


def test_names_of_services_and_tools_settings_and_ids_of_sash_are_not_shown():
    arguments = '{"service": "script.turn_on", "entity_ids": ["script.good_night"]}'
    later = '{"summary": "lights off", "calls": [{"service": "light.turn_off", "entity_ids": []}]}'
    result = "not done: I am not allowed to control devices. Turn on `allow_actuation` in the policy."
    messages = [
        MessageEntry("user", "Good night"),
        call("call_service", arguments),
        MessageEntry("tool", result, tool_call_id="c"),
        call("do_later", later),
        MessageEntry("tool", '{"waiting": {"id": "01M7V57GD27KY9Y4S84920XWHF"}}', tool_call_id="c"),
        MessageEntry(
            "assistant",
            "call_service was refused: script.turn_on needs `allow_actuation`, see 01M7V57GD27KY9Y4S84920XWHF. "
            "light.turn_off follows at 23:00.",
        ),
    ]
    assert build_digest([messages], count_text) == "- Good night | script.good_night · 23:00"


def test_what_the_user_says_is_shown_though_sash_uses_it_too():
    said = (
        "what is 01M7V57GD27KY9Y4S84920XWHF and what does the name of the setting called allow_actuation mean"
    )
    messages = [MessageEntry("user", said), call("call_service", '{"service": "light.turn_on"}')]
    assert build_digest([messages], count_text).endswith(" | allow_actuation")


def test_of_a_turn_without_a_model_only_the_user_s_words_are_shown():
    local = frozenset({"local_intent"})
    messages = [
        MessageEntry("user", "fnord", tags=local),
        MessageEntry("assistant", "Try “remember that …” at 10:30, Ada Brightwell.", tags=local),
    ]
    assert build_digest([messages], count_text) == "- fnord"


def test_of_equal_lines_the_newest_is_kept():
    messages = [*turn("good night"), *turn("E-1"), *turn("good night")]
    assert build_digest(messages, count_text) == "- E-1\n- good night"


def test_a_digest_is_not_extended_by_lines_that_it_has():
    digest = "- good night\n- E-1"
    assert extend_digest(digest, [*turn("good night"), *turn("E-2")], count_text) == f"{digest}\n- E-2"
    assert extend_digest(digest, turn("E-1"), count_text) == digest
    assert extend_digest("", turn("E-1"), count_text) == "- E-1"


def test_commands_of_every_day_do_not_displace_a_conversation():
    iban = "DE89 3704 0044 0532 0130 00"
    digest = extend_digest("", turn("the rent goes to", f"{iban}, yes"), count_text)
    daily = [*turn("good morning"), *turn("turn on the kitchen light"), *turn("good night")]
    for _ in range(400):
        digest = extend_digest(digest, daily, count_text)
    assert digest.splitlines()[0] == f"- the rent goes to | {iban}"
    assert len(digest.splitlines()) == 4


def test_a_message_without_words_has_its_line():
    image = MessageEntry("user", [{"type": "image_url", "image_url": "https://example.com/a.png"}])
    assert build_digest([[image]], count_text) == "- (no text)"
    assert build_digest([], count_text) == ""


def test_one_line_a_turn_oldest_first():
    messages = [*turn("first"), *turn("second"), *turn("third")]
    assert build_digest(messages, count_text) == "- first\n- second\n- third"


def test_the_oldest_lines_go_when_the_budget_is_reached():
    messages = [m for n in range(400) for m in turn(f"question {n} about sensor.room_{n}")]
    text = build_digest(messages, count_text)
    lines = text.splitlines()
    assert count_text(text) <= 2000
    assert lines[-1] == "- question 399 about sensor.room_399"
    assert lines[0] == f"- ({401 - len(lines)} earlier turns, see the transcript)"


def test_a_turn_too_large_for_the_digest_is_cut_between_identifiers():
    messages = turn("log", " ".join(f"sensor.room_{n}" for n in range(5000)))
    text = build_digest(messages, count_text)
    assert 1500 < count_text(text) <= 2000
    kept = text.count("sensor.room_")
    assert text.endswith(f"sensor.room_{kept - 1} · … +{5000 - kept}")


@given(
    st.lists(
        st.sampled_from(
            [
                "/api/users/123",
                "db.example.com:5432",
                "ERR_42",
                "light.kitchen",
                "21.5 °C",
                "0xDEADBEEF",
                "config.py line 45",
                "192.168.0.1",
                "https://a.example/x",
                "E-77",
                "E1001",
                "2026-11-15",
                "17",
                '"a b"',
                "snake_case",
                "--flag",
                "word",
            ]
        ),
        max_size=30,
    ),
    st.sampled_from([" ", ", ", "; ", ".\n", " and "]),
)
@settings(max_examples=200, deadline=None)
def test_every_identifier_survives_in_any_surroundings(names, glue):
    text = build_digest(turn("What now?", glue.join(names)), count_text)
    for name in names:
        assert name in text or name == "word"


@pytest.mark.parametrize("max_tokens", [0, -5, 5, "x", None])
def test_a_budget_below_one_line_is_refused(max_tokens):
    with pytest.raises(SashError):
        build_digest(turn("hi"), count_text, max_tokens)
