"""The page in the sidebar: its files, its panel, and its requests at `/api/sash/` for signed-in users."""

import asyncio
import gzip
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any
from unittest.mock import patch

import pytest
from aiohttp.test_utils import TestClient, TestServer
from homeassistant.auth.const import GROUP_ID_ADMIN, GROUP_ID_READ_ONLY, GROUP_ID_USER
from homeassistant.auth.models import User
from homeassistant.components.frontend import DATA_PANELS, EVENT_PANELS_UPDATED
from homeassistant.config_entries import ConfigEntryDisabler
from homeassistant.const import EVENT_HOMEASSISTANT_STOP
from homeassistant.core import HomeAssistant
from homeassistant.setup import async_setup_component
from pytest_homeassistant_custom_component.common import (
    CLIENT_ID,
    MockConfigEntry,
    MockUser,
    async_capture_events,
)

from custom_components.sash.const import DOMAIN, SUBENTRY_AI_TASK, SUBENTRY_CONVERSATION
from custom_components.sash.hass_home.home_layout import get_layout
from custom_components.sash.page_view import AGENT_HEADER
from sash.engine.runtime import Runtime
from sash.errors import StoreUnavailable
from sash.ports.home import Layout
from sash.web import PAGE_FOLDER
from tests.ha.inside.talking_house import ACTING, calls, make_subentry, open_house
from tests.models.wire import Reply, chunk, said

pytestmark = pytest.mark.usefixtures("socket_enabled")

HANGING = Reply(chunks=[chunk("Well, ")], then="hang")
WITHIN_S = 10


class Visitor:
    """A user with a browser: requests to `/api/sash/` with the sign-in of the user."""

    def __init__(self, client: TestClient[Any, Any], user: User, token: str) -> None:
        self.client = client
        self.user = user
        self.headers = {"Authorization": f"Bearer {token}"}

    def request(self, method: str, path: str, **options: Any) -> Any:
        headers = self.headers | options.pop("headers", {})
        return self.client.request(method, f"/api/sash/{path}", headers=headers, **options)

    async def read(self, method: str, path: str, body: Any = None, *, status: int | None = None) -> Any:
        async with asyncio.timeout(WITHIN_S), self.request(method, path, json=body) as response:
            answer = await response.json(content_type=None) if "json" in response.content_type else None
            assert response.status == status if status else response.ok, answer
        return answer

    async def start(self, **body: Any) -> str:
        return str((await self.read("POST", "v1/sessions", body))["session_id"])

    async def ask(self, session_id: str, text: str) -> dict[str, Any]:
        """Send a message, and return the turn when it has ended or waits."""
        sent = await self.read("POST", f"v1/sessions/{session_id}/messages", {"message": text})
        turn: dict[str, Any] = await self.read(
            "GET", f"v1/continuations/{sent['continuation_id']}?wait_ms=9000"
        )
        return turn


type Visit = Callable[..., Awaitable[Visitor]]


@pytest.fixture
async def visit(hass: HomeAssistant) -> AsyncIterator[Visit]:
    """Sign users in, at a server that cancels a request whose client has gone, as Home Assistant's does."""
    clients: list[TestClient[Any, Any]] = []

    async def sign_in(name: str, *, group_id: str = GROUP_ID_USER) -> Visitor:
        if not clients:
            clients.append(TestClient(TestServer(hass.http.app)))
            await clients[0].start_server()
        group = await hass.auth.async_get_group(group_id)
        assert group is not None
        user = MockUser(name=name, groups=[group]).add_to_hass(hass)
        refresh_token = await hass.auth.async_create_refresh_token(user, CLIENT_ID)
        return Visitor(clients[0], user, hass.auth.async_create_access_token(refresh_token))

    yield sign_in
    for client in clients:
        await client.close()


async def add_second_provider(hass: HomeAssistant) -> MockConfigEntry:
    """Set up a second config entry with an agent of its own."""
    second = MockConfigEntry(
        domain=DOMAIN,
        title="Second",
        data={"provider": "local"},
        subentries_data=[make_subentry(SUBENTRY_CONVERSATION, {"prompt": "Be brief."})],
    )
    second.add_to_hass(hass)
    assert await hass.config_entries.async_setup(second.entry_id)
    return second


async def read_frames(response: Any) -> AsyncIterator[dict[str, str]]:
    """Yield the frames of an event stream until it ends."""
    frame: dict[str, str] = {}
    async for line in response.content:
        name, _, value = line.decode().rstrip("\r\n").partition(": ")
        if name:
            frame[name] = value
        elif frame:
            yield frame
            frame = {}


def list_shown_agents(hass: HomeAssistant) -> list[dict[str, str]] | None:
    """Return the agents of the panel, or None if there is no panel."""
    panel = hass.data[DATA_PANELS].get(DOMAIN)
    return None if panel is None else panel.config["agents"]


async def test_the_panel_is_there_while_there_is_an_agent(hass: HomeAssistant) -> None:
    async with open_house(hass, said("ok")) as house:
        panel = hass.data[DATA_PANELS][DOMAIN]
        assert (panel.sidebar_title, panel.require_admin) == ("Sash", False)
        assert panel.config["_panel_custom"]["name"] == "sash-panel"
        first = {"id": next(iter(house.data.agents)), "name": "Sash"}
        assert list_shown_agents(hass) == [first]
        second = await add_second_provider(hass)
        other = {"id": next(iter(second.runtime_data.agents)), "name": "Sash"}
        assert list_shown_agents(hass) == [first, other]
        await hass.config_entries.async_set_disabled_by(house.entry.entry_id, ConfigEntryDisabler.USER)
        assert list_shown_agents(hass) == [other]
        await hass.config_entries.async_set_disabled_by(house.entry.entry_id, None)
        await hass.config_entries.async_remove(second.entry_id)
        assert list_shown_agents(hass) == [first]
        hass.config_entries.async_update_subentry(
            house.entry, house.entry.subentries[first["id"]], title="Butler"
        )
        await hass.async_block_till_done()
        assert list_shown_agents(hass) == [{**first, "name": "Butler"}]
        hass.config_entries.async_remove_subentry(house.entry, first["id"])
        await hass.async_block_till_done()
        assert list_shown_agents(hass) is None


@pytest.mark.parametrize("has_second", [False, True])
async def test_a_reload_leaves_the_panel_as_it_is(hass: HomeAssistant, has_second: bool) -> None:
    """Home Assistant sends users to the dashboard if their panel goes, and builds a changed one anew."""
    async with open_house(hass, said("ok")) as house:
        if has_second:
            await add_second_provider(hass)
        updates = async_capture_events(hass, EVENT_PANELS_UPDATED)
        shown = list_shown_agents(hass)
        assert await hass.config_entries.async_reload(house.entry.entry_id)
        await hass.async_block_till_done()
        assert (list_shown_agents(hass), updates) == (shown, [])


@pytest.mark.parametrize(
    "problem", [StoreUnavailable("it is locked"), RuntimeError("it is broken")], ids=repr
)
async def test_the_panel_stays_if_a_set_up_fails_and_goes_with_the_provider(
    hass: HomeAssistant, visit: Visit, problem: Exception
) -> None:
    async with open_house(hass, said("ok")) as house:
        anna = await visit("Anna")
        anna.headers[AGENT_HEADER] = next(iter(house.data.agents))
        with patch.object(Runtime, "open", side_effect=problem):
            assert not await hass.config_entries.async_reload(house.entry.entry_id)
        assert list_shown_agents(hass) is not None
        assert (await anna.read("GET", "v1/sessions", status=503))["code"] == "no_agent"
        await hass.config_entries.async_set_disabled_by(house.entry.entry_id, ConfigEntryDisabler.USER)
        assert list_shown_agents(hass) is None
        with patch.object(Runtime, "open", side_effect=problem):
            await hass.config_entries.async_set_disabled_by(house.entry.entry_id, None)
        assert list_shown_agents(hass) is not None
        await hass.config_entries.async_remove(house.entry.entry_id)
        assert list_shown_agents(hass) is None


async def test_the_files_of_the_page_are_served_and_kept_by_browsers(
    hass: HomeAssistant, visit: Visit
) -> None:
    async with open_house(hass, said("ok")):
        anna = await visit("Anna")
        url = hass.data[DATA_PANELS][DOMAIN].config["_panel_custom"]["module_url"]
        async with anna.client.get(url) as response:
            assert response.status == 200
            assert "javascript" in response.headers["Content-Type"]
            assert "max-age" in response.headers["Cache-Control"]
            assert await response.read() == (PAGE_FOLDER / "panel.js").read_bytes()
        async with anna.client.get(url.replace("panel.js", "languages/en.json")) as response:
            assert response.status == 200


async def test_without_a_sign_in_there_is_no_answer(hass: HomeAssistant, visit: Visit) -> None:
    async with open_house(hass, said("ok")):
        anna = await visit("Anna")
        for headers in ({}, {"Authorization": "Bearer wrong"}):
            async with anna.client.get("/api/sash/v1/sessions", headers=headers) as response:
                assert response.status == 401


async def test_without_an_agent_the_answer_says_so(hass: HomeAssistant, visit: Visit) -> None:
    assert await async_setup_component(hass, "homeassistant", {})
    assert await async_setup_component(hass, DOMAIN, {})
    anna = await visit("Anna")
    answer = await anna.read("GET", "v1/sessions", status=503)
    assert answer["code"] == "no_agent"


async def test_a_conversation_on_the_page(hass: HomeAssistant, visit: Visit) -> None:
    async with open_house(hass, said("Hello Anna."), prompt="You serve {{ user_name }}.") as house:
        anna = await visit("Anna")
        session_id = await anna.start(preferences={"language": "en"})
        turn = await anna.ask(session_id, "tell me a story")
        assert turn["response"]["final_message"] == "Hello Anna."
        assert "You serve Anna." in house.read_prompts()[0]
        shown = (await anna.read("GET", f"v1/sessions/{session_id}"))["session"]
        assert shown["owner"] == f"user:{anna.user.id}"
        assert shown["policy"]["allow_actuation"] is False
        assert turn["request"]["caller"]["user_id"] == anna.user.id


async def test_two_users_do_not_see_each_other(hass: HomeAssistant, visit: Visit) -> None:
    async with open_house(hass, said("ok"), said("ok")):
        anna, ben = await visit("Anna"), await visit("Ben", group_id=GROUP_ID_ADMIN)
        session_id = await anna.start()
        await anna.ask(session_id, "my secret is seven")
        await anna.read("POST", "v1/facts", {"text": "Anna likes tea."})
        await ben.read("GET", f"v1/sessions/{session_id}", status=404)
        await ben.read("GET", f"v1/sessions/{session_id}/messages", status=404)
        await ben.read("GET", f"events/{session_id}", status=404)
        await ben.read("POST", f"v1/sessions/{session_id}/messages", {"message": "hi"}, status=404)
        assert (await ben.read("GET", "v1/sessions"))["sessions"] == []
        assert (await ben.read("GET", "v1/facts"))["facts"] == []
        assert len((await anna.read("GET", "v1/sessions"))["sessions"]) == 1
        # Only administrators may erase everything, and only their own.
        await anna.read("DELETE", "v1/owners/me", status=403)
        await ben.read("DELETE", "v1/owners/me")
        assert len((await anna.read("GET", "v1/sessions"))["sessions"]) == 1


async def test_events_arrive_while_a_turn_runs(hass: HomeAssistant, visit: Visit) -> None:
    reply = Reply(chunks=[chunk("Once "), chunk("upon a time."), chunk(finish="stop")])
    async with open_house(hass, reply):
        anna = await visit("Anna")
        session_id = await anna.start()
        async with asyncio.timeout(WITHIN_S), anna.request("GET", f"events/{session_id}") as stream:
            assert stream.headers["Content-Type"].startswith("text/event-stream")
            frames = read_frames(stream)
            assert await anext(frames) == {"id": "0"}
            await anna.ask(session_id, "a story")
            kinds = []
            async for frame in frames:
                kinds.append(frame["event"])
                if frame["event"] == "final":
                    break
        assert {"partial", "final"} <= set(kinds)
        final = json.loads(frame["data"])
        assert final["session_id"] == session_id


@pytest.mark.parametrize("way", ["unload", "stop"])
async def test_streams_end_when_the_provider_is_unloaded_or_home_assistant_stops(
    hass: HomeAssistant, visit: Visit, way: str
) -> None:
    async with open_house(hass, said("ok")) as house:
        anna = await visit("Anna")
        session_id = await anna.start()
        async with asyncio.timeout(WITHIN_S), anna.request("GET", f"events/{session_id}") as stream:
            frames = read_frames(stream)
            await anext(frames)
            if way == "stop":
                hass.bus.async_fire(EVENT_HOMEASSISTANT_STOP)
                await hass.async_block_till_done()
            else:
                assert await hass.config_entries.async_unload(house.entry.entry_id)
            assert [frame async for frame in frames] == []
        answer = await anna.read("GET", "v1/sessions", status=503)
        assert answer["code"] == ("shutting_down" if way == "stop" else "no_agent")


async def test_a_request_that_waits_is_answered_when_the_provider_is_unloaded(
    hass: HomeAssistant, visit: Visit
) -> None:
    async with open_house(hass, HANGING) as house:
        anna = await visit("Anna")
        session_id = await anna.start()
        sent = await anna.read("POST", f"v1/sessions/{session_id}/messages", {"message": "a story"})
        waiting = asyncio.create_task(
            anna.read("GET", f"v1/continuations/{sent['continuation_id']}?wait_ms=9000", status=503)
        )
        await asyncio.sleep(0.2)
        assert await hass.config_entries.async_unload(house.entry.entry_id)
        assert (await waiting)["code"] == "shutting_down"


async def test_a_stream_ends_when_its_client_has_gone(hass: HomeAssistant, visit: Visit) -> None:
    async with open_house(hass, HANGING) as house:
        anna = await visit("Anna")
        session_id = await anna.start()
        for _ in range(20):  # More than one user may have open at a time.
            async with asyncio.timeout(WITHIN_S), anna.request("GET", f"events/{session_id}") as stream:
                await anext(read_frames(stream))
                stream.close()
        sent = await anna.read("POST", f"v1/sessions/{session_id}/messages", {"message": "a story"})
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.3):
                await anna.read("GET", f"v1/continuations/{sent['continuation_id']}?wait_ms=9000")
        turn = await anna.read("GET", f"v1/continuations/{sent['continuation_id']}")
        assert turn["status"] in ("running", "streaming")
        assert house.data.runtime.running_turns
        cancelled = await anna.read("POST", f"v1/continuations/{sent['continuation_id']}/cancel")
        assert cancelled["status"] == "cancelled"


async def test_a_stream_ends_when_its_user_is_signed_out(hass: HomeAssistant, visit: Visit) -> None:
    async with open_house(hass, said("ok")):
        anna = await visit("Anna")
        session_id = await anna.start()
        async with asyncio.timeout(WITHIN_S), anna.request("GET", f"events/{session_id}") as stream:
            frames = read_frames(stream)
            await anext(frames)
            sending = asyncio.create_task(anna.ask(session_id, "hello"))
            for token in list(anna.user.refresh_tokens.values()):
                hass.auth.async_remove_refresh_token(token)
            with pytest.raises(AssertionError):
                await sending
            await hass.config_entries.async_entries(DOMAIN)[0].runtime_data.runtime.end_session(
                session_id, owner=f"user:{anna.user.id}"
            )
            assert [frame async for frame in frames] == []


async def test_bodies_have_the_limits_of_the_server(hass: HomeAssistant, visit: Visit) -> None:
    async with open_house(hass, said("ok")):
        anna = await visit("Anna")
        large = b'{"message": "' + b"x" * 20_000_000 + b'"}'

        async def in_pieces() -> AsyncIterator[bytes]:
            for start in range(0, len(large), 1_000_000):
                yield large[start : start + 1_000_000]

        packed = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
        plain = {"Content-Type": "application/json"}
        for data, headers in ((large, plain), (in_pieces(), plain), (gzip.compress(large), packed)):
            async with anna.request("POST", "v1/ask", data=data, headers=headers) as response:
                assert response.status == 413
                assert (await response.json(content_type=None))["code"] == "body_too_large"


async def test_a_whole_conversation_is_exported_and_imported(hass: HomeAssistant, visit: Visit) -> None:
    async with open_house(hass, said("ok " * 300), **ACTING) as house:
        anna = await visit("Anna")
        session_id = await anna.start(name="Holiday")
        await anna.ask(session_id, "hello")
        exported = await anna.read("GET", f"v1/sessions/{session_id}/export")
        exported["session"]["policy"] |= {"allowlisted_services": ["*"], "require_confirmation": []}
        await anna.read("DELETE", f"v1/sessions/{session_id}")
        imported = (await anna.read("POST", "v1/sessions/import", exported))["session_id"]
        shown = (await anna.read("GET", f"v1/sessions/{imported}"))["session"]
        assert shown["policy"]["allowlisted_services"] == ACTING["allowlisted_services"]
        assert shown["policy"]["require_confirmation"] != []
        assert shown["context"]["agent_id"] == next(iter(house.data.agents))


async def test_an_import_is_of_the_user_who_imports_it(hass: HomeAssistant, visit: Visit) -> None:
    """A turn of it can be tried again, so it must not act as another user, or with another model."""
    async with open_house(hass, said("ok " * 300), **ACTING) as house:
        anna = await visit("Anna")
        session_id = await anna.start()
        await anna.ask(session_id, "hello")
        exported = await anna.read("GET", f"v1/sessions/{session_id}/export")
        exported["session"] |= {"is_one_question": True, "is_task": True}
        exported["continuations"][0]["request"] |= {
            "caller": {"user_id": "another", "user_name": "Owner", "certainty": "signed_in"},
            "model": {"name": "expensive"},
            "planner_hints": {"rule": "obey"},
        }
        await anna.read("DELETE", f"v1/sessions/{session_id}")
        imported = (await anna.read("POST", "v1/sessions/import", exported))["session_id"]
        owner = (await anna.read("GET", "v1/me"))["owner"]
        session = await house.data.runtime.get_session(imported, owner=owner)
        assert not (session.is_one_question or session.is_task)
        [turn] = await house.data.runtime.store.list_continuations(owner, imported)
        assert (turn.request.caller.user_name, turn.request.model, turn.request.planner_hints) == (
            "Anna",
            None,
            {},
        )


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "v1/sessions", {"policy": {"allow_actuation": True}}),
        ("POST", "v1/sessions", {"budgets": {"max_steps": 1000}}),
        ("PATCH", "v1/sessions/{}", {"policy": {"require_confirmation": []}}),
        ("PATCH", "v1/sessions/{}", {"instructions": "You open doors."}),
        ("POST", "v1/sessions/{}/messages", {"message": "hi", "model": {"name": "expensive"}}),
        ("POST", "v1/ask", {"message": "hi", "model": {"name": "expensive"}}),
    ],
)
async def test_the_options_of_the_agent_cannot_be_changed(
    hass: HomeAssistant, visit: Visit, method: str, path: str, body: dict[str, Any]
) -> None:
    async with open_house(hass, said("ok"), **ACTING):
        anna = await visit("Anna", group_id=GROUP_ID_ADMIN)
        session_id = await anna.start()
        answer = await anna.read(method, path.format(session_id), body, status=403)
        assert answer["code"] == "policy_exceeds_operator"
        assert "options of the agent" in answer["detail"]


async def test_other_fields_of_a_session_can_be_changed(hass: HomeAssistant, visit: Visit) -> None:
    async with open_house(hass, said("ok")):
        anna = await visit("Anna")
        session_id = await anna.start()
        shown = await anna.read("PATCH", f"v1/sessions/{session_id}", {"name": "Holiday"})
        assert shown["session"]["name"] == "Holiday"


async def test_a_session_gets_the_present_options_before_each_turn(hass: HomeAssistant, visit: Visit) -> None:
    async with open_house(hass, *[said("ok")] * 3, **ACTING) as house:
        anna = await visit("Anna")
        session_id = await anna.start()
        await anna.ask(session_id, "tell me a story")
        subentry = next(iter(house.entry.subentries.values()))
        hass.config_entries.async_update_subentry(
            house.entry, subentry, data={**subentry.data, "allow_actuation": False, "prompt": "Be short."}
        )
        await hass.async_block_till_done()
        await anna.ask(session_id, "and another one")
        shown = (await anna.read("GET", f"v1/sessions/{session_id}"))["session"]
        assert shown["policy"]["allow_actuation"] is False
        assert shown["instructions"] == "Be short."


async def test_an_approval_on_the_page_acts_as_the_user(hass: HomeAssistant, visit: Visit) -> None:
    unlock = calls("call_service", service="lock.unlock", entity_ids=["lock.front_door"])
    async with open_house(hass, unlock, said("Unlocked."), **ACTING):
        anna, users = await visit("Anna"), []
        hass.bus.async_listen("call_service", lambda event: users.append(event.context.user_id))
        session_id = await anna.start()
        turn = await anna.ask(session_id, "could you let the cat out through the front")
        assert turn["status"] == "awaiting_approval"
        (waiting,) = turn["waiting_calls"]
        path = f"v1/continuations/{turn['continuation_id']}"
        await anna.read("POST", f"{path}/approve", {"call_id": waiting["call_id"], "approved": True})
        done = await anna.read("GET", f"{path}?wait_ms=9000")
        assert done["response"]["actions"][0]["outcome"] == "done"
        assert users == [anna.user.id]


async def test_the_rights_of_the_user_count(hass: HomeAssistant, visit: Visit) -> None:
    async with open_house(hass, said("ok"), **ACTING):
        anna = await visit("Anna", group_id=GROUP_ID_READ_ONLY)
        turn = await anna.ask(await anna.start(), "turn on the bed light")
        assert [action["outcome"] for action in turn["response"]["actions"]] == ["failed"]


async def test_the_page_knows_the_options_of_the_agent(hass: HomeAssistant, visit: Visit) -> None:
    async with open_house(hass, said("ok"), **ACTING, max_history_turns=7):
        anna, ben = await visit("Anna"), await visit("Ben", group_id=GROUP_ID_ADMIN)
        shown = await anna.read("GET", "v1/me")
        assert (shown["owner"], shown["model"]) == (f"user:{anna.user.id}", "m")
        assert shown["scopes"] == ["read", "converse", "act"]
        assert shown["policy"]["allowlisted_services"] == ACTING["allowlisted_services"]
        assert shown["window"]["max_turns"] == 7
        assert "admin" in (await ben.read("GET", "v1/me"))["scopes"]


async def test_the_home_and_what_was_done_in_it(hass: HomeAssistant, visit: Visit) -> None:
    async with open_house(hass, said("ok"), **ACTING):
        anna = await visit("Anna")
        session_id = await anna.start()
        await anna.ask(session_id, "turn on the bed light")
        home = await anna.read("GET", "v1/home")
        states = {entity["entity_id"]: entity["state"] for entity in home["entities"]}
        assert states["light.bed_light"] == "on"
        (action,) = (await anna.read("GET", "v1/actions"))["actions"]
        assert (action["service"], action["caller"]["user_name"]) == ("light.turn_on", "Anna")
        undone = await anna.read("POST", f"v1/sessions/{session_id}/undo")
        await anna.read("GET", f"v1/continuations/{undone['continuation_id']}?wait_ms=9000")
        await hass.async_block_till_done()
        bed_light = hass.states.get("light.bed_light")
        assert bed_light is not None
        assert bed_light.state == "off"


async def test_an_approval_on_the_page_closes_the_question_by_voice(
    hass: HomeAssistant, visit: Visit
) -> None:
    unlock = calls("call_service", service="lock.unlock", entity_ids=["lock.front_door"])
    async with open_house(hass, unlock, said("Unlocked."), **ACTING) as house:
        anna = await visit("Anna")
        await house.say("could you let the cat out through the front", user=anna.user)
        (turn_id,) = house.data.late_turns.open_questions
        turn = await anna.read("GET", f"v1/continuations/{turn_id}")
        answer = {"call_id": turn["waiting_calls"][0]["call_id"], "approved": False}
        await anna.read("POST", f"v1/continuations/{turn_id}/approve", answer)
        assert house.data.late_turns.open_questions == []
        await anna.read("GET", f"v1/continuations/{turn_id}?wait_ms=9000")


async def test_one_question_and_a_conversation_by_name(hass: HomeAssistant, visit: Visit) -> None:
    async with open_house(hass, said("Four."), said("Five."), said("Six."), **ACTING) as house:
        anna = await visit("Anna")
        asked = await anna.read("POST", "v1/ask", {"message": "how much is two plus two"})
        assert asked["response"]["final_message"] == "Four."
        for expected in ("Five.", "Six."):
            body = {"conversation_id": "numbers", "text": "and the next one please"}
            answer = await anna.read("POST", "conversation", body)
            assert expected in json.dumps(answer)
        named = await house.data.runtime.find_session("numbers", owner=f"user:{anna.user.id}")
        assert named is not None
        assert named.policy.allowlisted_services == tuple(ACTING["allowlisted_services"])
        assert named.window.max_turns == 10


async def test_an_interrupted_turn_is_resumed_and_a_failed_one_tried_again(
    hass: HomeAssistant, visit: Visit
) -> None:
    async with open_house(hass, HANGING, said("Here it is."), Reply(status=400), said("Now.")) as house:
        anna = await visit("Anna")
        session_id = await anna.start()
        sent = await anna.read("POST", f"v1/sessions/{session_id}/messages", {"message": "a story"})
        async with asyncio.timeout(WITHIN_S):
            while not house.wire.requests:
                await asyncio.sleep(0.01)
        await hass.config_entries.async_reload(house.entry.entry_id)
        path = f"v1/continuations/{sent['continuation_id']}"
        assert (await anna.read("GET", path))["status"] == "interrupted"
        await anna.read("POST", f"{path}/resume")
        turn = await anna.read("GET", f"{path}?wait_ms=9000")
        assert turn["response"]["final_message"] == "Here it is."
        failed = await anna.ask(session_id, "another one")
        assert failed["status"] in ("failed", "interrupted")
        again = await anna.read("POST", f"v1/continuations/{failed['continuation_id']}/retry")
        turn = await anna.read("GET", f"v1/continuations/{again['continuation_id']}?wait_ms=9000")
        assert turn["response"]["final_message"] == "Now."


@pytest.mark.parametrize("way", ["messages", "ask", "conversation", "retry"])
async def test_a_sentence_right_after_a_reload_waits_for_the_home(
    hass: HomeAssistant, visit: Visit, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    can_read, sentence = asyncio.Event(), "turn on the bed light"

    async def read_slowly(hass: HomeAssistant) -> Layout:
        await can_read.wait()
        return await get_layout(hass)

    async with open_house(hass, said("Fine."), **ACTING) as house:
        anna = await visit("Anna")
        session_id = await anna.start()
        if way == "retry":
            turn = await anna.ask(session_id, sentence)
            await hass.services.async_call(
                "light", "turn_off", {"entity_id": "light.bed_light"}, blocking=True
            )
        monkeypatch.setattr("custom_components.sash.hass_home.hass_home.get_layout", read_slowly)
        assert await hass.config_entries.async_reload(house.entry.entry_id)
        request = {
            "messages": lambda: anna.ask(session_id, sentence),
            "ask": lambda: anna.read("POST", "v1/ask", {"message": sentence}),
            "conversation": lambda: anna.read(
                "POST", "conversation", {"conversation_id": "lights", "text": sentence}
            ),
            "retry": lambda: anna.read("POST", f"v1/continuations/{turn['continuation_id']}/retry"),
        }[way]
        answering = asyncio.create_task(request())
        await asyncio.sleep(0.3)
        can_read.set()
        answer = await answering
        if way == "retry":
            await anna.read("GET", f"v1/continuations/{answer['continuation_id']}?wait_ms=9000")
        bed_light = hass.states.get("light.bed_light")
        assert bed_light is not None
        assert (bed_light.state, house.wire.requests) == ("on", [])


async def test_the_page_chooses_an_agent(hass: HomeAssistant, visit: Visit) -> None:
    async with open_house(hass, said("ok")) as house:
        second = await add_second_provider(hass)
        anna = await visit("Anna")
        await anna.start()
        anna.headers[AGENT_HEADER] = next(iter(second.runtime_data.agents))
        assert (await anna.read("GET", "v1/sessions"))["sessions"] == []
        session_id = await anna.start()
        shown = (await anna.read("GET", f"v1/sessions/{session_id}"))["session"]
        assert shown["instructions"] == "Be brief."
        anna.headers[AGENT_HEADER] = next(iter(house.data.agents))
        await anna.read("GET", f"v1/sessions/{session_id}", status=404)
        anna.headers[AGENT_HEADER] = "unknown"
        assert (await anna.read("GET", "v1/sessions", status=404))["code"] == "agent_not_found"


@pytest.mark.parametrize("state", ["loading", "retrying", "failed", "unloaded"])
async def test_an_agent_whose_provider_is_not_loaded_is_only_away(
    hass: HomeAssistant, visit: Visit, monkeypatch: pytest.MonkeyPatch, state: str
) -> None:
    can_open, opening = asyncio.Event(), Runtime.open

    async def open_or_fail(runtime: Runtime, **options: Any) -> Any:
        if state != "loading":
            raise StoreUnavailable("it is locked") if state == "retrying" else RuntimeError("it is broken")
        await can_open.wait()
        return await opening(runtime, **options)

    async with open_house(hass, said("ok")) as house:
        second = await add_second_provider(hass)
        anna = await visit("Anna")
        anna.headers[AGENT_HEADER] = next(iter(house.data.agents))
        session_id = await anna.start()
        assert await hass.config_entries.async_unload(house.entry.entry_id)
        monkeypatch.setattr(Runtime, "open", open_or_fail)
        setting_up = None
        if state == "loading":
            setting_up = hass.async_create_task(hass.config_entries.async_setup(house.entry.entry_id))
        elif state != "unloaded":
            assert not await hass.config_entries.async_setup(house.entry.entry_id)
        async with anna.request("GET", f"v1/sessions/{session_id}") as response:
            assert (response.status, response.headers.get("Retry-After")) == (503, "5")
            assert (await response.json(content_type=None))["code"] == "no_agent"
        if setting_up is not None:
            can_open.set()
            assert await setting_up
            await anna.read("GET", f"v1/sessions/{session_id}")
        else:
            await hass.config_entries.async_set_disabled_by(house.entry.entry_id, ConfigEntryDisabler.USER)
            answer = await anna.read("GET", f"v1/sessions/{session_id}", status=404)
            assert answer["code"] == "agent_not_found"
        anna.headers[AGENT_HEADER] = next(iter(second.runtime_data.agents))
        await anna.read("GET", "v1/sessions")


async def test_an_ai_task_is_no_agent(hass: HomeAssistant, visit: Visit) -> None:
    async with open_house(hass, said("ok"), task={}) as house:
        anna = await visit("Anna")
        tasks = [s for s in house.entry.subentries.values() if s.subentry_type == SUBENTRY_AI_TASK]
        anna.headers[AGENT_HEADER] = tasks[0].subentry_id
        assert (await anna.read("GET", "v1/sessions", status=404))["code"] == "agent_not_found"


async def test_a_wrong_template_is_explained(hass: HomeAssistant, visit: Visit) -> None:
    async with open_house(hass, said("ok"), prompt="{{ 1 / 0 }}"):
        anna = await visit("Anna")
        answer = await anna.read("POST", "v1/sessions", {}, status=422)
        assert answer["code"] == "invalid_config"
        assert "instructions of the agent Sash" in answer["detail"]


async def test_other_paths_and_methods_are_answered_as_by_the_server(
    hass: HomeAssistant, visit: Visit
) -> None:
    async with open_house(hass, said("ok")):
        anna = await visit("Anna", group_id=GROUP_ID_ADMIN)
        assert (await anna.read("GET", "health"))["status"] == "ok"
        assert (await anna.read("GET", "nothing/here", status=404))["code"] == "not_found"
        assert (await anna.read("PUT", "v1/sessions", {}, status=405))["code"] == "method_not_allowed"
        # These belong to the server alone.
        for path in ("metrics", "docs", "mcp", ""):
            await anna.read("GET", path, status=404)
        async with anna.request("HEAD", "ready") as response:
            assert response.status == 200
            assert await response.read() == b""
        async with anna.request("GET", "v1/sessions/a%2Fb") as response:
            assert response.status == 404


async def test_a_system_user_is_the_house(hass: HomeAssistant, visit: Visit) -> None:
    async with open_house(hass, said("ok")):
        anna = await visit("Anna")
        anna.user.system_generated = True
        session_id = await anna.start()
        shown = (await anna.read("GET", f"v1/sessions/{session_id}"))["session"]
        assert shown["owner"] == "house"


async def test_a_failure_of_the_application_breaks_the_connection(
    hass: HomeAssistant, visit: Visit, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_house(hass, said("ok")) as house:
        anna = await visit("Anna")

        async def fail(*_: Any, **__: Any) -> None:
            raise RuntimeError("the key is 123")

        monkeypatch.setattr(house.data.runtime, "list_sessions", fail)
        answer = await anna.read("GET", "v1/sessions", status=500)
        assert answer["code"] == "internal_error"
        assert "123" not in json.dumps(answer)
