"""`sash show` and the context over REST show which messages were recalled."""

import json

import pytest

from sash.engine.runtime import Runtime
from sash.stores.sqlite.store import SqliteStore
from sash.testing import ScriptedModel
from sash.values.sessions import WindowLimits
from sash.values.turn_caller import TurnCaller
from tests.runtime.talk import turn
from tests.surfaces.serving import serving

SMALL = WindowLimits(max_turns=2, evict_to=0.5)
SAID = "I put the copper tape under the bed"
TALK = (SAID, *(f"small talk number {n}" for n in range(4)), "Where did I put the copper tape?")


@pytest.fixture
async def recalled(cli):
    """The ids of a session, of its last turn, which recalled something, and of its first, which did not."""
    cli.data.mkdir()
    async with Runtime(SqliteStore(cli.data / "sash.db"), ScriptedModel("Fine.")) as runtime:
        session = await runtime.start_session(window=SMALL)
        turns = [await turn(runtime, session, text, caller=TurnCaller(user_name="Ida")) for text in TALK]
    return session.id, turns[-1].continuation.id, turns[0].continuation.id


def test_a_turn_is_shown_with_what_was_recalled_and_why(cli, recalled):
    _, asked, said = recalled
    lines = cli("show", asked).stdout.splitlines()
    [n] = [n for n, line in enumerate(lines) if "recalled" in line]
    assert lines[n].strip() == "← recalled 4 old messages, found by these words: copper, tape"
    assert lines[n + 1].endswith(f"Ida: {SAID}")
    assert lines[n + 2].endswith("assistant: Fine.")
    assert "recalled" not in cli("show", said).stdout


def test_the_context_of_a_turn_is_what_was_recalled_for_it(cli, recalled):
    _, asked, said = recalled
    words = " ".join(cli("show", asked, "--context").stdout.split())
    assert "Recalled for this turn:" in words
    assert f"{SAID}" in words.partition("Recalled for this turn:")[2]
    assert words.endswith("tokens, found by these words: copper, tape.")
    assert "No old messages were recalled for this turn." in cli("show", said, "--context").stdout
    shown = json.loads(cli("show", asked, "--context", "--json").stdout)
    assert shown["recalled"]["reason"] == "words" and shown["continuation_id"] == asked
    assert json.loads(cli("show", said, "--context", "--json").stdout)["recalled"] is None
    assert "recalled" not in json.loads(cli("show", asked, "--json").stdout)


def test_the_context_of_a_session_has_what_was_recalled_for_its_last_turn(cli, recalled):
    session, asked, _ = recalled
    words = " ".join(cli("show", session, "--context").stdout.split())
    assert SAID in words.partition("Recalled for the last turn:")[2]
    shown = json.loads(cli("show", session, "--context", "--json").stdout)["context"]["recalled"]
    assert shown["continuation_id"] == asked
    assert {"at", "speaker", "text", "score", "tokens"} <= shown["messages"][0].keys()


async def test_the_context_over_rest_has_what_was_recalled_for_the_last_turn(tmp_path):
    async with serving(tmp_path, lambda request: "Fine.") as served:
        window = {"max_turns": 2, "evict_to": 0.5}
        session_id = await served.start(window=window)
        for text in TALK:
            await served.wait(await served.send(session_id, text))
        context = (await served.client.get(f"/v1/sessions/{session_id}/context")).json()
    assert context["recalled"]["reason"] == "words"
    assert context["recalled"]["found_words"] == ["copper", "tape"]
    assert context["recalled"]["messages"][0]["text"] == SAID
