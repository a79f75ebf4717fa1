"""Lists, JSON objects and bodies that would slow down every turn are refused."""

import pytest

from sash import SessionPolicy
from sash.errors import InvalidInput
from sash.values.large_json import LARGE_BYTES, has_more_values, parse_json
from tests.surfaces.serving import problem, serving

TOO_LARGE = {f"key{n}": "x" * 100 for n in range(1000)}


@pytest.fixture
async def served(tmp_path):
    async with serving(tmp_path) as served:
        yield served


@pytest.mark.parametrize("field", ["allowlisted_services", "denylisted_services", "require_confirmation"])
async def test_a_policy_has_at_most_500_patterns_in_a_list(served, field):
    patterns = [f"light.n{n}" for n in range(501)]
    refused = await served.client.post("/v1/sessions", json={"policy": {field: patterns}})
    assert field in problem(refused, 422, "invalid_input")["detail"]
    with pytest.raises(InvalidInput, match="at most 500"):
        SessionPolicy(**{field: patterns})


@pytest.mark.parametrize("body", [{"preferences": TOO_LARGE}, {"model": {"options": TOO_LARGE}}])
async def test_a_session_takes_no_large_json_object(served, body):
    problem(await served.client.post("/v1/sessions", json=body), 422, "invalid_input")


@pytest.mark.parametrize("field", ["metadata", "planner_hints"])
async def test_a_message_takes_no_large_json_object(served, field):
    session_id = await served.start()
    body = {"message": "hi", field: TOO_LARGE}
    refused = await served.client.post(f"/v1/sessions/{session_id}/messages", json=body)
    assert "65,536" in problem(refused, 422, "invalid_input")["detail"]


async def test_a_body_of_very_many_values_is_refused_before_it_is_parsed(served):
    body = {"policy": {"denylisted_services": [f"light.n{n}" for n in range(6_000)]}}
    refused = await served.client.post("/v1/sessions", json=body)
    assert "5,000" in problem(refused, 422, "invalid_input")["detail"]
    refused = await served.client.post("/v1/sessions", json={f"unknown{n}": 1 for n in range(6_000)})
    assert "5,000" in problem(refused, 422, "invalid_input")["detail"]


async def test_an_import_of_very_many_values_is_refused_before_it_is_parsed(served):
    body = b'{"format": "sash.session", "version": 1, "x": [' + b"{}," * 2_000_000 + b"{}]}"
    headers = {"Content-Type": "application/json"}
    refused = await served.client.post("/v1/sessions/import", content=body, headers=headers)
    assert "2,000,000" in problem(refused, 422, "invalid_input")["detail"]


async def test_a_long_text_with_commas_and_quotes_is_one_value(served):
    session_id = await served.start()
    text = 'one, "two", \\three\\, ' * 20_000
    sent = await served.client.post(f"/v1/sessions/{session_id}/messages", json={"message": text})
    assert sent.status_code == 202, sent.text


@pytest.mark.parametrize(
    ("text", "count"), [(b"[1, 2, 3]", 3), (b'{"a": "1,2", "b": "\\",\\\\"}', 2), (b'["\\\\", "," , 3]', 3)]
)
def test_values_are_counted_outside_of_strings(text, count):
    assert has_more_values(text, count - 1)
    assert not has_more_values(text, count)


def test_a_large_text_is_parsed_like_a_small_one():
    text = b'{"list": [1, -2.5e3, true, null, "\\u00e4\\n", {"a": []}], "text": "%s"}'
    small, large = parse_json(text % b"x"), parse_json(text % (b"x" * LARGE_BYTES))
    assert small["list"] == large["list"] == [1, -2500.0, True, None, "ä\n", {"a": []}]
    with pytest.raises(ValueError, match="Expecting"):
        parse_json(text.replace(b"null", b"nul") % (b"x" * LARGE_BYTES))
