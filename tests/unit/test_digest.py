"""The digest: all identifiers verbatim, within the budget, in linear time."""

import json
import re
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sash import SashError
from sash.memory.digest import build_digest
from sash.memory.identifiers import find_identifiers
from sash.memory.proper_names import find_names
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


def test_the_seed_s_example_keeps_what_a_summary_would_lose():
    line = build_digest(turn(SEED), count_text)
    assert "\n" not in line
    for name in ("500", "/api/users/123", "db.example.com:5432", "config.py line 45"):
        assert name in line


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("it failed with E1001, ERR_TIMEOUT and HTTP 500.", ["E1001", "ERR_TIMEOUT", "HTTP 500"]),
        ("exit code 137; status 404", ["exit code 137", "status 404"]),
        (
            "see /var/log/ha.log, src/sash/tokens.py:12 and ~/x.txt",
            ["/var/log/ha.log", "src/sash/tokens.py:12", "~/x.txt"],
        ),
        (r"in C:\temp\x.txt there", [r"C:\temp\x.txt"]),
        (
            "ask db.example.com:5432 or 192.168.1.20:8123 or 10.0.0.1",
            ["db.example.com:5432", "192.168.1.20:8123", "10.0.0.1"],
        ),
        ("open https://example.com/a?b=c#d, please", ["https://example.com/a?b=c#d"]),
        ("mail ann@example.com.", ["ann@example.com"]),
        (
            "light.kitchen_ceiling and homeassistant.restart",
            ["light.kitchen_ceiling", "homeassistant.restart"],
        ),
        (
            "21.5 °C, 48 %, 35 percent, 230 V, 3.5kWh, 120 ms",
            ["21.5 °C", "48 %", "35 percent", "230 V", "3.5kWh", "120 ms"],
        ),
        ("it cost $0.01, or 1,000.50 in all", ["$0.01", "1,000.50"]),
        ("at 06:42 on 2026-11-15", ["06:42", "2026-11-15"]),
        ('she said "turn it off" and `x = 1`', ['"turn it off"', "`x = 1`"]),
        ("I don't think it's the user's fault", []),
        ("process_data() raised TypeError in getUser", ["process_data", "TypeError", "getUser"]),
        ("v1.2.3 of commit 3f9a2bc", ["v1.2.3", "3f9a2bc"]),
        ("550e8400-e29b-41d4-a716-446655440000", ["550e8400-e29b-41d4-a716-446655440000"]),
        ("AA:BB:CC:DD:EE:FF", ["AA:BB:CC:DD:EE:FF"]),
        ("run with --dry-run and $HOME, see #123", ["--dry-run", "$HOME", "#123"]),
        ("my-host.example.com, docker-compose.yml", ["my-host.example.com", "docker-compose.yml"]),
        ("01ARZ3NDEKTSV4RRFFQ69G5FAV", ["01ARZ3NDEKTSV4RRFFQ69G5FAV"]),
        ("50 km/h, 12 µg/m³, 10 MB/s, 1013 hPa", ["50 km/h", "12 µg/m³", "10 MB/s", "1013 hPa"]),
        ("20 mph for 12,50 €", ["20 mph", "12,50 €"]),
        ("claude-opus-4-1 on localhost:8123", ["claude-opus-4-1", "localhost:8123"]),
        ("fe80::1ff:fe23:4567:890a", ["fe80::1ff:fe23:4567:890a"]),
        (
            "(see https://example.com/a) or https://x.org/A_(b).",
            ["https://example.com/a", "https://x.org/A_(b)"],
        ),
        ("/config/" + "x" * 100, ["/config/" + "x" * 100]),
        ('The 5" screen says "turn it off now"', ["5", '"turn it off now"']),
        ('"' + "so " * 120 + '" and "turn it off"', ['"turn it off"']),
        ('{"entity_id":"light.kitchen","n":128}', ['"entity_id"', '"light.kitchen"', '"n"', "128"]),
        ("error 'can't open file' here", ["'can't open file'"]),
        ("„eins zwei“, «deux», ‘three’", ["„eins zwei“", "«deux»", "‘three’"]),
        ("错误代码500发生了", ["错误代码500发生了"]),
        ("/api/users?id=5&page=2 took 1.5e3 Pa", ["/api/users?id=5&page=2", "1.5e3"]),
        ("100 USD, 5 months", ["100 USD", "5 months"]),
        ("rows[0].x is 1,000.50", ["rows[0].x", "1,000.50"]),
        ("Hello there. How are you today? I am fine, e.g. happy.", []),
        ("call +44 20 7946 0958 or 030 / 123 45 67", ["+44 20 7946 0958", "030 / 123 45 67"]),
        ("the IBAN is DE89 3704 0044 0532 0130 00.", ["IBAN", "DE89 3704 0044 0532 0130 00"]),
        ("on 3 April, on May 5th, 2026 and am 24. Dezember", ["3 April", "May 5th, 2026", "24. Dezember"]),
        ("el 3 de mayo, le 1er mars, il 2 giugno", ["3 de mayo", "1er mars", "2 giugno"]),
        ("205 pounds, 12,50 Euro, um 18 Uhr", ["205 pounds", "12,50 Euro", "18 Uhr"]),
    ],
)
def test_identifiers_are_found_whole(text, expected):
    assert find_identifiers(text) == expected


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("my sister Ada Brightwell and Tom live in Leeds now", ["Ada Brightwell", "Tom", "Leeds"]),
        ("We saw Dr. Lindqvist at eleven. She was kind", ["Dr. Lindqvist"]),
        ("Frau Meier-Schulz hat den Hund von Herrn Krause gesehen", ["Frau Meier-Schulz", "Herrn Krause"]),
        ("Der Hund hat heute das Futter und die Leine im Garten vergessen", []),
        ("The kitchen is warm. Turn it off. I'm tired, I think", []),
        ("я была дома вчера и видела Машу", ["Машу"]),
        ("Hier elle a vu Madame Dupont, mais Paul était content", ["Madame Dupont", "Paul"]),
        ("we sat in the den with Anna Smith", ["Anna Smith"]),
        ("x" * 50_000, []),
    ],
)
def test_names_of_people_and_places_are_found(text, names):
    assert find_names(text) == names


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


@given(st.text(max_size=200) | st.text("ab1-_./: ,()[]\"'`%°C$@#=", max_size=200))
@settings(max_examples=300, deadline=None)
def test_an_identifier_occurs_in_the_text_and_is_no_part_of_a_longer_name(text):
    for name in find_identifiers(text):
        assert name in text
        if re.fullmatch(r"[\w.-]+", name):
            assert re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-]\w)", text)


def test_hostile_text_costs_linear_time():
    """Linear is a few seconds for all of them; a blow-up would take hours and runs into the time-out."""
    code = """
from sash.memory.identifiers import find_identifiers
from sash.memory.proper_names import find_names
from sash.memory.tokens import count_text
for unit in ["00 ", "+1 22 ", "AB12 3456 ", "A a", "a Bc ", "Dr A", "1 M", "a", "a.", "a/", "'", '"a', ' "a', "_", "1.", "1", "1,", "-", "aA", "a-", "@a", "a[b]", "x y ",
             "a@", "a:", "é", "C:\\\\ ", "a://", "1 ", "http://a)", ")"]:
    find_identifiers("http://" + unit * (500_000 // len(unit)))
    find_names("a " + unit * (500_000 // len(unit)))
count_text((" " * 99_999 + "x") * 5)
"""
    done = subprocess.run([sys.executable, "-c", code], timeout=120)
    assert done.returncode == 0


@pytest.mark.parametrize("max_tokens", [0, -5, 5, "x", None])
def test_a_budget_below_one_line_is_refused(max_tokens):
    with pytest.raises(SashError):
        build_digest(turn("hi"), count_text, max_tokens)
