"""The file of the tokens disappears or cannot be read. The server refuses all requests until it is back."""

import pytest

from sash.app.access import SCOPES, Tokens
from sash.errors import StoreUnavailable, TokenNotFound
from tests.surfaces.serving import problem, serving

TOKENS = "tokens.json"


async def test_a_file_that_disappears_closes_the_server_until_it_is_back(tmp_path):
    async with serving(tmp_path) as served:
        assert (await served.client.get("/v1/sessions")).status_code == 200
        headers = served.token()
        assert (await served.client.get("/v1/sessions", headers=headers)).status_code == 200
        (tmp_path / TOKENS).rename(tmp_path / "away.json")
        for sent in ({}, headers, {"Authorization": "Bearer sash_0_0"}):
            refused = await served.client.get("/v1/sessions", headers=sent)
            assert "tokens.json is missing" in problem(refused, 503, "store_unavailable")["detail"]
        (tmp_path / "tokens.lock").unlink()
        problem(await served.client.get("/v1/sessions"), 503, "store_unavailable")
        (tmp_path / "away.json").rename(tmp_path / TOKENS)
        assert (await served.client.get("/v1/sessions", headers=headers)).status_code == 200
        problem(await served.client.get("/v1/sessions"), 401, "unauthorized")


async def test_a_damaged_file_closes_the_server(tmp_path):
    async with serving(tmp_path) as served:
        headers = served.token()
        (tmp_path / TOKENS).write_text("[{")
        for sent in ({}, headers):
            answered = await served.client.get("/v1/sessions", headers=sent)
            assert answered.status_code in (401, 503)
        (tmp_path / TOKENS).unlink()
        (tmp_path / TOKENS).mkdir()
        for sent in ({}, headers):
            answered = await served.client.get("/v1/sessions", headers=sent)
            assert answered.status_code in (401, 503)


async def test_a_server_does_not_start_if_its_tokens_have_disappeared(tmp_path):
    Tokens(tmp_path / TOKENS).create("anna", SCOPES)
    (tmp_path / TOKENS).unlink()
    with pytest.raises(StoreUnavailable, match="sash token create"):
        async with serving(tmp_path):
            pass


async def test_a_new_token_opens_the_server_for_its_owner_only(tmp_path):
    async with serving(tmp_path) as served:
        old = served.token()
        (tmp_path / TOKENS).unlink()
        new = served.token()
        assert (await served.client.get("/v1/sessions", headers=new)).status_code == 200
        problem(await served.client.get("/v1/sessions", headers=old), 401, "unauthorized")
        problem(await served.client.get("/v1/sessions"), 401, "unauthorized")


async def test_a_server_that_never_had_a_token_needs_none(tmp_path):
    with pytest.raises(TokenNotFound):
        Tokens(tmp_path / TOKENS).revoke("0000")
    async with serving(tmp_path) as served:
        assert (await served.client.get("/v1/sessions")).status_code == 200
