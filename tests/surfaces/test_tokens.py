"""Tokens: stored as hashes, revoked, expired, and required."""

import asyncio
from datetime import timedelta

import pytest

from sash.app.access import SCOPES, Tokens
from sash.errors import Forbidden, InvalidInput, StoreUnavailable, Unauthorized
from sash.server.middleware.authentication import TokenCheck
from sash.testing import FakeClock
from tests.surfaces.serving import WAIT_S, listen, problem, serving, until


def test_a_token_is_stored_as_a_hash_in_a_private_file(tmp_path):
    path = tmp_path / "tokens.json"
    token, text = Tokens(path).create("anna", ["read", "converse"], name="tablet")
    assert path.stat().st_mode & 0o077 == 0
    secret = text.split("_", 2)[2]
    assert secret not in path.read_text() and len(secret) >= 43
    caller = Tokens(path).caller(text)
    assert (caller.owner, caller.scopes) == ("anna", {"read", "converse"})
    with pytest.raises(Forbidden, match="act"):
        caller.need("act")
    for wrong in (
        "",
        "sash",
        "sash__",
        text[:-1],
        text + "x",
        f"sash_{token.id}_",
        text.replace("sash", "sosh"),
    ):
        with pytest.raises(Unauthorized):
            Tokens(path).caller(wrong)


def test_revoked_and_expired_tokens_are_refused(tmp_path):
    clock = FakeClock()
    tokens, others = Tokens(tmp_path / "t.json", clock), Tokens(tmp_path / "t.json", clock)
    token, text = tokens.create("anna", SCOPES)
    _, short = tokens.create("anna", SCOPES, expires_in=timedelta(days=1))
    assert others.caller(text) and others.caller(short)
    tokens.revoke(token.id)
    with pytest.raises(Unauthorized):
        others.caller(text)
    clock.advance(86_400)
    with pytest.raises(Unauthorized, match="expired"):
        others.caller(short)


def test_unknown_scopes_are_refused(tmp_path):
    for wrong in ([], ["all"], ["read", "write"]):
        with pytest.raises(InvalidInput, match="read, converse, act, admin"):
            Tokens(tmp_path / "t.json").create("anna", wrong)


def test_a_damaged_token_file_refuses_every_token(tmp_path):
    path = tmp_path / "t.json"
    path.write_text("[{")
    with pytest.raises(StoreUnavailable, match="repair it"):
        Tokens(path).list()


async def test_every_request_needs_a_token_once_one_exists(served):
    await served.start()
    headers = served.token()
    for path in ("/v1/sessions", "/metrics", "/events/x", "/v1/stats"):
        refused = await served.client.get(path)
        assert "redacted" not in problem(refused, 401, "unauthorized")["detail"]
        assert refused.headers["www-authenticate"].startswith("Bearer")
    for path in ("/", "/health", "/ready", "/docs", "/openapi.json"):
        assert (await served.client.get(path)).status_code == 200
    assert (await served.client.get("/v1/sessions", headers=headers)).status_code == 200
    for wrong in ("Bearer nonsense", "Basic YTpi", "Bearer", headers["Authorization"] + "x"):
        refused = await served.client.get("/v1/sessions", headers={"Authorization": wrong})
        problem(refused, 401, "unauthorized")


async def test_revoking_the_last_token_does_not_open_the_server(served):
    [token] = [served.tokens.create("anna", SCOPES)[0]]
    served.tokens.revoke(token.id)
    problem(await served.client.get("/v1/sessions"), 401, "unauthorized")


def test_tokens_created_concurrently_are_all_stored(tmp_path):
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda n: Tokens(tmp_path / "t.json").create(f"o{n}", SCOPES)[0].id, range(16)))
    assert {token.id for token in Tokens(tmp_path / "t.json").list()} == set(made)


async def test_an_event_stream_ends_when_its_token_is_revoked(tmp_path):
    async with serving(tmp_path, "one", "the secret is 4711") as served:
        anna = served.token("anna")
        token, text = served.tokens.create("anna", ["read"])
        session_id = (await served.client.post("/v1/sessions", headers=anna)).json()["session_id"]
        listening = asyncio.create_task(
            listen(served.client, session_id, lambda e: False, headers={"Authorization": f"Bearer {text}"})
        )
        at = f"/v1/sessions/{session_id}/messages"
        await until(served.runtime.count_subscribers, listening)
        served.tokens.revoke(token.id)
        await served.client.post(at, json={"message": "hi"}, headers=anna)
        heard = await asyncio.wait_for(listening, WAIT_S)
        assert heard == [{"id": "0"}]


def test_a_stream_checks_its_token_at_most_once_in_an_interval():
    times, checks, counts = iter((0.0, 0.5, 0.9, 1.0, 1.5, 2.5)), [], []
    check = TokenCheck(lambda: checks.append("checked"), 1.0, now=lambda: next(times))
    for _ in range(6):
        check()
        counts.append(len(checks))
    assert counts == [1, 1, 1, 2, 2, 3]
