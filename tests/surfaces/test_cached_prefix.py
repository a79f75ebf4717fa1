"""A new note leaves the part of the prompt alone that a provider caches, whatever surface adds the note."""

import json

import pytest

from sash.demo.demo_home import demo_home
from tests.surfaces.serving import WAIT_S, serving
from tests.surfaces.speaking import ERAS, call, talking

FACT = "I like 21 degrees"
OLD_FACT = "the cat is called Mia"
THREE_TURNS = {"max_tokens": None, "max_turns": 3, "evict_to": 0.5}


async def read_prompt(served, session_id, message):
    """Send a message and return the one prompt of its turn, as bytes per tool and message."""
    turn_id = await served.send(session_id, message)
    assert (await served.wait(turn_id))["status"] == "completed"
    [prompt] = (await served.client.get(f"/v1/continuations/{turn_id}/prompts")).json()["prompts"]
    assert prompt["is_exact"]
    return [json.dumps(one).encode() for one in (*prompt["tools"], *prompt["messages"])]


def cached(prompt):
    """Return the prompt without its changing parts: the beginning of every later prompt until an eviction."""
    return b"".join(one for one in prompt if "volatile" not in json.loads(one))


def places(prompt, text):
    """Return the roles of the messages with a text. A changing part has the role "volatile"."""
    found = [json.loads(one) for one in prompt if text.encode() in one]
    return ["volatile" if "volatile" in one else one["role"] for one in found]


async def add_by_rest(served, session_id):
    assert (await served.client.post("/v1/facts", json={"text": FACT})).status_code == 201


async def add_to_the_session(served, session_id):
    added = await served.client.post(f"/v1/sessions/{session_id}/facts", json={"text": FACT})
    assert added.status_code == 201


async def add_by_pin(served, session_id):
    assert (await served.client.post("/v1/pins", json={"text": FACT})).status_code == 201


async def add_by_ask(served, session_id):
    asked = {"message": f"remember that {FACT}", "timeout_ms": WAIT_S * 1000}
    assert (await served.client.post("/v1/ask", json=asked)).status_code == 200


async def add_by_mcp(served, session_id):
    async with talking(served.url, ERAS[0]) as client:
        await call(client, "ha_agent_remember", text=FACT)


async def add_by_ask_over_mcp(served, session_id):
    async with talking(served.url, ERAS[0]) as client:
        await call(client, "ha_agent_ask", message=f"remember that {FACT}")


@pytest.mark.parametrize(
    "add", [add_by_rest, add_to_the_session, add_by_pin, add_by_ask, add_by_mcp, add_by_ask_over_mcp]
)
async def test_a_new_note_leaves_the_cached_prompt_alone_until_the_next_eviction(tmp_path, add):
    home = demo_home()
    async with serving(tmp_path, lambda request: "ok", home=home) as served:
        await served.runtime.home_ready(timeout_s=WAIT_S)
        await served.client.post("/v1/facts", json={"text": OLD_FACT})
        session_id = await served.start(window=THREE_TURNS)
        home.set_state("light.kitchen_ceiling", "off")
        before = await read_prompt(served, session_id, "think about one")
        assert places(before, OLD_FACT) == ["system"] and places(before, "light.kitchen_ceiling off")
        home.set_state("light.kitchen_ceiling", "on")  # A description of the house anew would tell this.
        await add(served, session_id)
        after = await read_prompt(served, session_id, "think about two")
        assert b"".join(after).startswith(cached(before))
        assert places(after, FACT) == ["volatile"]
        later = await read_prompt(served, session_id, "think about three")
        assert b"".join(later).startswith(cached(after))
        assert places(later, FACT) == ["volatile"]
        for n in range(3):
            later = await read_prompt(served, session_id, f"think about eviction {n}")
        assert places(later, FACT) == places(later, OLD_FACT) == ["system"]


async def test_a_fact_told_in_a_session_leaves_its_own_cached_prompt_alone(tmp_path):
    async with serving(tmp_path, lambda request: "ok") as served:
        session_id = await served.start()
        before = await read_prompt(served, session_id, "think about one")
        await served.wait(await served.send(session_id, f"remember that {FACT}"))
        after = await read_prompt(served, session_id, "think about two")
        assert b"".join(after).startswith(cached(before))
        assert "system" not in places(after, FACT) and places(after, FACT)[-1] == "volatile"
