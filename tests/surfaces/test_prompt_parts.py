"""The parts of the prompts that a turn sent: their tokens, and what differs from the call before."""

from datetime import timedelta

from sash.engine.prompt_parts import PartDescriber
from sash.engine.prompt_record import PromptReader
from sash.memory.tokens import TOKENS_PER_REPLY, TokenCounter
from sash.testing import FakeClock, ScriptedModel, calling
from sash.values.prompts import PartUse, PromptPart, PromptRecord, SentPrompts, hash_json, join_ids
from tests.home.small_home import house
from tests.surfaces.serving import WAIT_S, serving
from tests.tools import tool

SMALL = {"max_turns": 4, "evict_to": 0.5}
LOOK = tool("look", lambda arguments, context: "a lamp")


def answer(request):
    last = request.messages[-1]
    wants_look = last["role"] == "user" and "look" in str(last["content"])
    return calling("look") if wants_look else "All is well."


async def show_prompts(served, turn_id):
    shown = await served.client.get(f"/v1/continuations/{turn_id}/prompts")
    assert shown.status_code == 200, shown.text
    return shown.json()["prompts"]


async def think(served, session_id, message, **body):
    """Send a message, wait for the answer, and return the prompts of the turn."""
    turn_id = await served.send(session_id, message, **body)
    assert (await served.wait(turn_id))["status"] == "completed"
    return await show_prompts(served, turn_id)


def changes(prompt):
    return {part["name"]: part["change"] for part in prompt["parts"]}


async def test_the_parts_of_each_call_say_what_is_new_since_the_call_before(tmp_path):
    model = ScriptedModel(answer)
    async with serving(tmp_path, model=model, tools=[LOOK]) as served:
        session_id = await served.start()
        first, second = await think(served, session_id, "please look around you")
        assert changes(first) == {"system": "new", "tools": "new", "turn": "new"}
        assert changes(second) == {"system": "same", "tools": "same", "turn": "extended"}
        [third] = await think(served, session_id, "think about rain")
        assert changes(third) == {"system": "same", "tools": "same", "window": "new", "turn": "new"}
        [fourth] = await think(served, session_id, "think about snow")
        assert changes(fourth) == {"system": "same", "tools": "same", "window": "extended", "turn": "new"}
        await served.client.post(f"/v1/sessions/{session_id}/facts", json={"text": "The cat is called Tom."})
        [fifth] = await think(served, session_id, "think about hail")
        assert changes(fifth)["notes"] == "new" and changes(fifth)["window"] == "extended"
        assert [part["name"] for part in fifth["parts"]] == ["system", "tools", "window", "notes", "turn"]


async def test_an_eviction_changes_the_window_and_the_memory(tmp_path):
    async with serving(tmp_path, model=ScriptedModel(answer)) as served:
        session_id = await served.start(window=SMALL)
        seen = [changes((await think(served, session_id, f"think about {n}"))[0]) for n in range(9)]
        windows = [one.get("window") for one in seen]
        assert windows[:3] == [None, "new", "extended"] and "changed" in windows
        cuts = [n for n, change in enumerate(windows) if change == "changed"]
        assert [seen[n]["memory"] for n in cuts] == ["new", *["extended"] * (len(cuts) - 1)], seen


async def test_the_tokens_of_the_parts_add_up_to_the_prompt(tmp_path):
    model, home = ScriptedModel(answer), house()
    async with serving(tmp_path, model=model, tools=[LOOK], home=home) as served:
        await served.runtime.home_ready(timeout_s=WAIT_S)
        session_id = await served.start(window=SMALL)
        counter, checked = TokenCounter(served.runtime.model.name), 0
        image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}
        for n in range(8):
            home.set_state("switch.kettle", "on" if n % 2 else "off")
            hints = {"attachments": [image], "planner_hints": {"prefer": "short"}} if n == 2 else {}
            for prompt in await think(served, session_id, f"look at number {n}, and think", **hints):
                tokens = sum(part["tokens"] for part in prompt["parts"])
                expected = counter.count_messages(prompt["messages"], prompt["tools"])
                assert tokens + TOKENS_PER_REPLY == expected
                checked += 1
        assert checked == 16


async def test_a_prompt_after_a_restart_is_compared_with_the_one_before_it(tmp_path):
    for message, expected in (("think about rain", "new"), ("think about snow", "same")):
        async with serving(tmp_path, model=ScriptedModel(answer)) as served:
            if expected == "new":
                session_id = await served.start()
            [prompt] = await think(served, session_id, message)
            assert changes(prompt)["system"] == expected


async def test_a_local_sentence_in_between_is_no_model_call(tmp_path):
    async with serving(tmp_path, model=ScriptedModel(answer)) as served:
        session_id = await served.start()
        await think(served, session_id, "think about rain")
        await served.wait(await served.send(session_id, "remember that the cat is called Tom"))
        [prompt] = await think(served, session_id, "think about snow")
        assert changes(prompt)["system"] == "same" and changes(prompt)["notes"] == "new"


async def test_a_change_is_unknown_if_the_prompt_before_was_dropped(tmp_path):
    clock = FakeClock()
    async with serving(tmp_path, model=ScriptedModel(answer), clock=clock) as served:
        session_id = await served.start()
        [first] = await think(served, session_id, "think about rain")
        assert changes(first)["system"] == "new"
        clock.advance(timedelta(hours=10).total_seconds())
        turn_id = await served.send(session_id, "think about snow")
        await served.wait(turn_id)
        assert changes((await show_prompts(served, turn_id))[0])["system"] == "same"
        clock.advance(timedelta(hours=15).total_seconds())
        await served.runtime.sweep()
        [prompt] = await show_prompts(served, turn_id)
        assert set(changes(prompt).values()) == {None, "new"} and changes(prompt)["turn"] == "new"
        assert all(part["tokens"] for part in prompt["parts"])


async def test_a_change_is_unknown_if_a_message_was_amended_since(tmp_path):
    async with serving(tmp_path, model=ScriptedModel(answer)) as served:
        session_id = await served.start()
        turn_id = await served.send(session_id, "think about rain")
        await served.wait(turn_id)
        await think(served, session_id, "think about snow")
        third = await served.send(session_id, "think about hail")
        await served.wait(third)
        await served.runtime.amend_turn(turn_id, "something else")
        [prompt] = await show_prompts(served, third)
        assert not prompt["is_exact"]
        assert changes(prompt) == {"system": "same", "window": None, "turn": "new"} | (
            {"tools": "same"} if prompt["tools"] else {}
        )


def test_the_tokens_of_a_part_with_a_missing_piece_are_unknown():
    own = {"role": "user", "content": "hi"}
    uses = (PartUse("system", "gone"), PartUse("window", "known", 2))
    records = (PromptRecord(0, "m", hash_json(own), uses),)
    window = PromptPart("known", ids=join_ids(["one", "two"]))
    reader = PromptReader(SentPrompts(records, (window,)), {"one": {"role": "user", "content": "a"}})
    [prompt] = reader.restore(lambda count: [own], PartDescriber(TokenCounter()), None)
    shown = [(part.name, part.tokens is None, part.change) for part in prompt.parts]
    assert shown == [("system", True, None), ("window", True, None), ("turn", False, "new")]
    assert not prompt.is_exact
