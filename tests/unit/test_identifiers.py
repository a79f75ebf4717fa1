"""Identifiers of a text: each found whole, in linear time."""

import re
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sash.memory.identifiers import find_identifiers


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
    "text", ["{}", "call {}.", "call {}, then", "call {}; then", "({})", "<{}>", "who is {}?"]
)
@pytest.mark.parametrize(
    "number",
    [
        "+49 30 5557 8812",
        "0171 234 5678",
        "+33 6 12 34 56 78",
        "+49-171-2345678",
        "(020) 7946 0958",
        "(0043) 1 234 56 78",
        "+49 (0)30 5557 8812",
        "+1 (555) 123-4567",
        "(555) 123-4567",
        "555 123 4567",
        "612 34 56 78",
        "06.12.34.56.78",
        "030/123 45 67",
        "0800 1111",
        "+49 30 5557-0",
    ],
)
def test_a_phone_number_stays_whole_wherever_it_stands(number, text):
    assert find_identifiers(text.format(number)) == [number]


@pytest.mark.parametrize("text", ["{}", "the IBAN is {}.", "to {}, today", "({})", "from {}; or"])
@pytest.mark.parametrize(
    "number",
    [
        "DE89 3704 0044 0532 0130 00",
        "DE89370400440532013000",
        "AT61 1904 3002 3457 3201",
        "GB29 NWBK 6016 1331 9268 19",
        "FR14 2004 1010 0505 0001 3M02 606",
    ],
)
def test_an_iban_stays_whole_wherever_it_stands(number, text):
    assert [found for found in find_identifiers(text.format(number)) if found != "IBAN"] == [number]


def test_a_word_behind_an_iban_or_a_phone_number_is_not_part_of_it():
    text = "ES91 2100 0418 4502 0005 1332 BIC, +49 30 5557 8812 at 9, on 01.02.2026 18:30"
    assert find_identifiers(text) == [
        *("ES91 2100 0418 4502 0005 1332", "BIC"),
        *("+49 30 5557 8812", "9", "01.02.2026", "18:30"),
    ]


def test_a_label_without_a_blank_does_not_split_a_number():
    text = "Tel:+49 30 5557 8812, IBAN:DE89 3704 0044 0532 0130 00"
    assert find_identifiers(text) == ["Tel:+49 30 5557 8812", "IBAN:DE89 3704 0044 0532 0130 00"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2 ½ cups of milk, ½ cup, 1 1/2 cups", ["2 ½ cups", "½ cup", "1 1/2 cups"]),
        ("2 ½ of them, a 1¼-inch seal", ["2 ½", "1¼-inch"]),
        ("3 x 2.4 m beams", ["3 x 2.4 m"]),
        ("60 × 40 × 20 cm or 3 x 2", ["60 × 40 × 20 cm", "3 x 2"]),
        ("10–12 mm, 10 - 12 mm, 10 to 12 °C", ["10–12 mm", "10 - 12 mm", "10 to 12 °C"]),
        ("12 500 € for 1 000 000 people", ["12 500 €", "1 000 000"]),
        ("5 ± 0.2 V; LED 5 W", ["5 ± 0.2 V", "LED", "5 W"]),
        ("at 6:30 pm, um 18-20 Uhr", ["6:30 pm", "18-20 Uhr"]),
        ("20 21 22 23 °C", ["20 21 22", "23 °C"]),
    ],
)
def test_a_quantity_has_its_fraction_its_range_and_its_unit(text, expected):
    assert find_identifiers(text) == expected


@pytest.mark.parametrize("text", ["{}", "on {}.", "({})", "{}, at night"])
@pytest.mark.parametrize(
    "date",
    [
        *("5 de mayo de 2026", "5 mai 2026", "5. Mai 2026", "5 mei 2026", "5 maggio 2026", "1er mai 2026"),
        *(
            "5th of May, 2026",
            "May 5th, 2026",
            "5 may",
            "Mar 3",
            "12. 5. 2026",
            "mayo de 2026",
            "5–7 May 2026",
        ),
    ],
)
def test_a_date_has_its_year(date, text):
    assert find_identifiers(text.format(date)) == [date]


@pytest.mark.parametrize("text", ["{}", "take {}.", "({})", "take {} today"])
@pytest.mark.parametrize(
    "code",
    ["LH 123", "KX71 OBD", "B-MW 1234", "HH AB 1234", "SW1A 1AA", "1012 AB", "ISO 9001", "DE 123 456 789"],
)
def test_a_code_of_several_parts_stays_whole(code, text):
    assert find_identifiers(text.format(code)) == [code]


@pytest.mark.parametrize("title", ["‘Max Havelaar’", "»Die Welle«", "‚Die Welle‘", "« Le Monde »"])
def test_a_title_in_any_quotes_is_found_with_them(title):
    assert find_identifiers(f"read {title}, please") == [title]


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
for unit in ["00 ", "12 ", "1 x ", "1-", "1 ½ ", "(0)", "0(0)", "+1 22 ", "5 May ", "AB 1 ", "A. ", "Aa-", "Aa de ", "AB12 3456 ", "A a", "a Bc ", "Dr A", "1 M", "a", "a.", "a/", "'", '"a', ' "a', "_", "1.", "1", "1,", "-", "aA", "a-", "@a", "a[b]", "x y ",
             "a@", "a:", "é", "C:\\\\ ", "a://", "1 ", "http://a)", ")"]:
    find_identifiers("http://" + unit * (500_000 // len(unit)))
    find_names("a " + unit * (500_000 // len(unit)))
count_text((" " * 99_999 + "x") * 5)
"""
    done = subprocess.run([sys.executable, "-c", code], timeout=120)
    assert done.returncode == 0
