"""Secrets are taken out, and nothing else."""

import json
import subprocess
import sys
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sash.engine import redaction
from sash.engine.redaction import MARK, GrowingText, redact, redact_json, redact_result, redact_step
from sash.values.continuations import Action
from sash.values.step_codec import encode_body
from sash.values.steps import (
    AnswerSentBack,
    ApprovalRequested,
    HomeChanged,
    Plan,
    Recalled,
    ToolCall,
    ToolResult,
)

SECRET = "sk-abcdefghijklmnopqrstuvwx"
KEY = "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA75\nqz==\n-----END RSA PRIVATE KEY-----"
SECRETS = [
    KEY,
    KEY[:60],
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3.SflKxwRJSMeKKF2QT4",
    "sk-abcdefghijklmnopqrstuvwx",
    "sk-proj-abcdefghijklmnopqrstuvwx",
    "ghp_abcdefghijklmnopqrstuvwxyz0123456789",
    "github_pat_abcdefghijklmnopqrstuvwxyz0123456789",
    "glpat-abcdefghijklmnopqrst",
    "xoxb-1234567890-abcdef",
    "AKIAIOSFODNN7EXAMPLE",
    "AIzaSyA1234567890abcdefghijklmnopqrstuvw",
]
NAMED = ["password", "db_password", "PASSWD", "api_key", "api-key", "apiKey", "access_token", "auth-token"]
NAMED += ["client_secret", "secret_key", "private_key", "OPENAI_API_KEY", "AWS_SECRET_ACCESS_KEY", "DB_PASS"]
NAMED += ["token", "refresh_token", "secret", "pwd", "passphrase"]


def make_call(arguments):
    return {"id": "call", "type": "function", "function": {"name": "look", "arguments": arguments}}


@pytest.mark.parametrize("secret", SECRETS)
def test_what_looks_like_a_secret_is_taken_out_of_any_text(secret):
    assert redact(f"take {secret} and go") in (f"take {MARK} and go", f"take {MARK}")
    assert secret not in str(redact_json({"a": ["x", {"b": f"({secret})"}]}))


@pytest.mark.parametrize("name", NAMED)
@pytest.mark.parametrize("form", ["{}=hunter2x", "{}: hunter2x", '"{}": "hunter2x"', "{} = 'hunter2x'"])
def test_what_is_named_like_a_secret_loses_its_value_and_keeps_its_name(name, form):
    clean = redact(f"and {form.format(name)} and")
    assert "hunter2x" not in clean
    assert name in clean
    assert clean.startswith("and ")
    assert clean.endswith(" and")


def test_tokens_in_headers_and_urls_are_taken_out():
    assert redact("Authorization: Bearer abcdefghijklmnop.q") == f"Authorization: {MARK}"
    assert redact("authorization: Basic YW5uOmh1bnRlcg==") == f"authorization: {MARK}"
    assert redact("curl -H 'x: bearer abcdefghijklmnop.q'") == f"curl -H 'x: bearer {MARK}'"
    assert redact("postgres://ann:hunter2@db.example.com/x") == f"postgres://{MARK}@db.example.com/x"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "the password is not in this sentence",
        "press any key to go on, the token is lost",
        "https://example.com:8080/path?q=1",
        "sensor.kitchen_temperature is 21.5 °C",
        "a task-list and a desk-lamp",
        "0x1f 550e8400-e29b-41d4-a716-446655440000 deadbeef",
    ],
)
def test_ordinary_text_stays_word_for_word(text):
    assert redact(text) == text


def test_a_quoted_secret_is_taken_out_whole():
    assert redact('"password": "correct horse", "n": 1') == f'"password": "{MARK}", "n": 1'
    assert redact(r"{\"password\": \"hunter2x\", \"n\": 1}") == rf"{{\"password\": \"{MARK}\", \"n\": 1}}"
    assert redact("the password is: hunter2x!") == f"the password is: {MARK}"


def test_arguments_stay_json():
    call = {"name": "f", "arguments": '{"password": 12345678, "n":  1}'}
    assert redact_json(call) == {"name": "f", "arguments": f'{{"password": "{MARK}", "n": 1}}'}
    assert redact_json({"arguments": '{"n":  1, "key": 2}'}) == {"arguments": '{"n":  1, "key": 2}'}


def test_what_a_tool_returns_is_made_json_without_secrets():
    circle = {}
    circle["self"] = circle
    assert redact_result({"when": date(2026, 1, 1), "token": "abcd"}) == {
        "when": "2026-01-01",
        "token": MARK,
    }
    assert redact_result({(1, 2): "x"}) == "{(1, 2): 'x'}"
    assert "self" in redact_result(circle)


def test_values_under_telling_keys_are_taken_out_whatever_they_look_like():
    secrets = {"password": "p", "nested": {"api_key": "k", "n": 1}, "token_count": 5, "secret": ""}
    clean = {"password": MARK, "nested": {"api_key": MARK, "n": 1}, "token_count": 5, "secret": ""}
    assert redact_json(secrets) == clean


def test_the_longer_text_of_a_model_never_shows_a_secret_that_its_beginning_hid():
    text = f"Here: {KEY} and password: hunter2x, that is all."
    for end in range(len(text)):
        assert "MIIE" not in redact(text[:end])


def test_a_hostile_text_costs_linear_time():
    """Linear is a second for all of them; a blow-up would take hours and runs into the time-out."""
    code = """
from sash.engine.redaction import redact
for unit in ["password", "a-", "-----BEGIN ", "://a:", "eyJ", "eyJaaaaaaaa.", "bearer ", "api_key ", "_", "a://"]:
    redact("key " + unit * (300_000 // len(unit)) + "key")
"""
    done = subprocess.run([sys.executable, "-c", code], timeout=120)
    assert done.returncode == 0


@pytest.mark.parametrize(
    "step",
    [
        Plan(f"I use {SECRET}", (make_call(f'{{"key": "{SECRET}"}}'),)),
        Plan("", (make_call("{}") | {"extra_content": {"note": SECRET}},)),
        Plan("", ({**make_call("{}"), "function": {**make_call("{}")["function"], "note": SECRET}},)),
        ToolCall("call", "look", f'{{"key": "{SECRET}"}}'),
        ToolResult("call", "look", f"the key is {SECRET}"),
        ToolResult("call", "act", "done", action=Action("call", "act", {"code": SECRET}, "done")),
        Recalled(("key",), (), f"it was {SECRET}"),
        HomeChanged(f"The note now says {SECRET}"),
        AnswerSentBack(f"I have set {SECRET}"),
        ApprovalRequested("call", "act", f"it uses {SECRET}", {"data": SECRET}),
    ],
    ids=lambda step: type(step).__name__,
)
def test_no_step_keeps_a_secret(step):
    clean = redact_step(step)
    assert type(clean) is type(step)
    assert SECRET not in json.dumps(encode_body(clean))
    assert redact_step(clean) == clean


@pytest.mark.parametrize(
    ("arguments", "secret"),
    [
        (r'{"p\u0061ssword": "hunter22x"}', "hunter22x"),
        (r'{"url": "https:\/\/bob:hunter22x@cam\/s"}', "hunter22x"),
        (r'{"text": "\u0073k-' + SECRET.removeprefix("sk-") + '"}', SECRET.removeprefix("sk-")),
    ],
)
def test_an_escaped_secret_in_arguments_is_redacted(arguments, secret):
    assert secret in arguments
    assert secret not in redact_step(ToolCall("call", "look", arguments)).arguments
    assert secret not in str(redact_step(Plan("", (make_call(arguments),))))


def test_the_id_of_a_tool_call_stays():
    plan = redact_step(Plan("", ({**make_call("{}"), "id": SECRET},)))
    call = redact_step(ToolCall(SECRET, "look", "{}"))
    assert plan.tool_calls[0]["id"] == call.call_id == SECRET


def test_arguments_that_are_nested_too_deep_are_redacted_as_text():
    arguments = f'{{"password": "{SECRET}", "rooms": {"[" * 5_000}{"]" * 5_000}}}'
    assert SECRET not in redact_step(ToolCall("call", "look", arguments)).arguments


@given(st.data())
def test_a_growing_text_is_redacted_like_the_whole_text(data):
    """The text grows at spaces, because the last word of a partial text is not shown."""
    filler = st.sampled_from(["word " * 300, "x" * 2500 + " ", "a-b.c ", "Bearer ", "password: ", "\n"])
    words = data.draw(
        st.lists(st.one_of(filler, st.sampled_from(SECRETS).map(lambda s: f"{s} ")), max_size=12)
    )
    growing, text = GrowingText(), ""
    for word in words:
        text += word
        assert growing.redact(text) == redact(text)


def test_only_the_end_of_a_growing_text_is_read_again(monkeypatch):
    read = []
    original = redaction.iterate_matches

    def watch(pattern, text, start=0):
        read.append(len(text) - start)
        return original(pattern, text, start)

    monkeypatch.setattr(redaction, "iterate_matches", watch)
    growing, text = GrowingText(), ""
    for n in range(200):
        text += f"the key of room {n} hangs on the wall, and its token: abcdef{n} is old. " * 10
        growing.redact(text)
    assert max(read) < 4_000
    assert len(text) > 100_000
