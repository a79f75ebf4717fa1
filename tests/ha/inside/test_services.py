"""The services: they act for the user who calls, and reach only what is theirs and what the house shares."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from homeassistant.auth.models import User
from homeassistant.components import conversation, persistent_notification
from homeassistant.components.homeassistant.exposed_entities import async_expose_entity
from homeassistant.core import Context, HomeAssistant, ServiceCall
from homeassistant.exceptions import HomeAssistantError, ServiceValidationError
from homeassistant.setup import async_setup_component
from homeassistant.util import dt as dt_util
from pytest_homeassistant_custom_component.common import MockConfigEntry, async_fire_time_changed

from custom_components.sash.const import DOMAIN, SUBENTRY_CONVERSATION
from sash.values.sessions import Session
from tests.ha.inside.talking_house import ACTING, LOCKS, TalkingHouse, calls, open_house, said_by
from tests.models.wire import Reply, chunk, failed, said

pytestmark = pytest.mark.usefixtures("socket_enabled")

NO_MODEL = failed(500)
UNLOCK = calls("call_service", service="lock.unlock", entity_ids=["lock.front_door"])


async def call(house: TalkingHouse, service: str, user: User | None = None, **data: Any) -> dict[str, Any]:
    """Call a service and return its response."""
    response = await house.hass.services.async_call(
        DOMAIN,
        service,
        data,
        blocking=True,
        return_response=True,
        context=Context(user_id=None if user is None else user.id),
    )
    assert response is not None
    return dict(response)


async def list_sessions(house: TalkingHouse, owner: str = "house") -> tuple[Session, ...]:
    return (await house.data.runtime.list_sessions(owner=owner)).items


async def add_provider(house: TalkingHouse) -> MockConfigEntry:
    """Add a second provider with an agent."""
    agent = {"subentry_type": SUBENTRY_CONVERSATION, "title": "Other", "data": ACTING, "unique_id": None}
    entry = MockConfigEntry(domain=DOMAIN, title="Other", data={"provider": "local"}, subentries_data=[agent])
    entry.add_to_hass(house.hass)
    assert await house.hass.config_entries.async_setup(entry.entry_id)
    await house.hass.async_block_till_done()
    await entry.runtime_data.runtime.home_ready(timeout_s=30)
    return entry


# ask


async def test_an_automation_asks_and_gets_the_answer(hass: HomeAssistant) -> None:
    async with open_house(hass, said("Yes, it is.")) as house:
        answer = await call(house, "ask", agent=house.agent_id, text="Is the garage closed?")
        [session] = await list_sessions(house)
        conversation_id = answer.pop("conversation_id")
        assert answer == {
            "continuation_id": answer["continuation_id"],
            "session_id": session.id,
            "status": "completed",
            "answer": "Yes, it is.",
            "actions": [],
            "waiting_calls": [],
        }
        await call(house, "ask", text="Are you sure?", conversation_id=conversation_id)
        assert "Is the garage closed?" in house.read_prompts()[-1]


async def test_what_a_user_asks_belongs_to_the_user(hass: HomeAssistant, hass_read_only_user: User) -> None:
    async with open_house(hass, said("ok")) as house:
        await call(house, "ask", hass_read_only_user, text="what do you know?")
        assert await list_sessions(house) == ()
        [session] = await list_sessions(house, f"user:{hass_read_only_user.id}")
        [turn] = await house.data.runtime.list_turns(session.id, owner=session.owner)
        assert turn.request.caller is not None
        assert turn.request.caller.user_id == hass_read_only_user.id


async def test_the_area_and_the_language_belong_to_the_message(hass: HomeAssistant) -> None:
    async with open_house(hass, NO_MODEL, **ACTING) as house:
        answer = await call(house, "ask", text="schalte das Licht ein", language="de", area="kitchen")
        [action] = answer["actions"]
        assert action == {
            "service": "light.turn_on",
            "entity_ids": ["light.kitchen_lights"],
            "outcome": "done",
            "verified": True,
        }
        with pytest.raises(ServiceValidationError, match="no area attic"):
            await call(house, "ask", text="turn on the light", area="attic")
        with pytest.raises(ServiceValidationError, match="no device toaster"):
            await call(house, "ask", text="turn on the light", device_id="toaster")


async def test_a_question_of_the_agent_is_returned(hass: HomeAssistant) -> None:
    async with open_house(hass, NO_MODEL, **ACTING) as house:
        asked = await call(house, "ask", text="unlock the front door")
        assert asked["status"] == "awaiting_approval"
        assert asked["answer"] is None
        [waiting] = asked["waiting_calls"]
        assert waiting["question"].startswith("Unlock ")
        done = await call(house, "approve", continuation_id=asked["continuation_id"], approved=True)
        assert done["status"] == "completed"
        assert [action["outcome"] for action in done["actions"]] == ["done"]
        assert hass.states.get("lock.front_door").state == "unlocked"


async def test_a_failed_turn_is_an_error_with_the_reason(hass: HomeAssistant) -> None:
    async with open_house(hass, failed(404, "model_not_found")) as house:
        with pytest.raises(HomeAssistantError, match="does not know the language model"):
            await call(house, "ask", text="what do you know?")


async def test_a_wrong_prompt_is_an_error_with_the_name_of_the_agent(hass: HomeAssistant) -> None:
    async with open_house(hass, said("ok"), prompt="{{ 1 / 0 }}") as house:
        with pytest.raises(ServiceValidationError, match="The instructions of Sash are wrong"):
            await call(house, "ask", text="what do you know?")


async def test_a_cancelled_call_cancels_its_turn(hass: HomeAssistant) -> None:
    async with open_house(hass, Reply(chunks=[chunk("Well, ")], then="hang")) as house:
        asking = asyncio.create_task(call(house, "ask", text="what do you know?"))
        async with asyncio.timeout(10):
            while not house.wire.requests:
                await asyncio.sleep(0.01)
            asking.cancel()
            await asyncio.wait([asking])
            await house.data.runtime.wait_for_turns()
        [session] = await list_sessions(house)
        [turn] = await house.data.store.list_continuations("house", session.id)
        assert turn.status == "cancelled"


async def test_without_an_agent_the_remedy_is_told(hass: HomeAssistant) -> None:
    async with open_house(hass, said("ok")) as house:
        [agent_id] = house.entry.subentries
        hass.config_entries.async_remove_subentry(house.entry, agent_id)
        await hass.async_block_till_done()
        with pytest.raises(ServiceValidationError, match="No agent of Sash is running"):
            await call(house, "ask", text="hello there")


async def test_an_agent_has_to_be_named_if_there_are_several(hass: HomeAssistant) -> None:
    async with open_house(hass, said("ok")) as house:
        other = await add_provider(house)
        with pytest.raises(ServiceValidationError, match="several"):
            await call(house, "ask", text="hello there")
        with pytest.raises(ServiceValidationError, match=r"no Sash agent conversation\.other_one"):
            await call(house, "ask", text="hello there", agent="conversation.other_one")
        with pytest.raises(ServiceValidationError, match=r"no Sash agent conversation\.home_assistant"):
            await call(house, "ask", text="hello there", agent="conversation.home_assistant")
        answer = await call(
            house,
            "ask",
            text="turn on the bed light",
            config_entry_id=other.entry_id,
            agent="conversation.other",
        )
        assert answer["status"] == "completed"


async def test_without_a_loaded_provider_the_services_say_so(hass: HomeAssistant) -> None:
    async with open_house(hass, said("ok")) as house:
        await hass.config_entries.async_unload(house.entry.entry_id)
        with pytest.raises(ServiceValidationError):
            await call(house, "search", query="anything")
        with pytest.raises(ServiceValidationError):
            await call(house, "ask", text="hello there", config_entry_id="nothing")


# whose data


@pytest.mark.parametrize(
    ("service", "data"),
    [
        ("cancel", {}),
        ("resume", {}),
        ("approve", {"approved": True}),
        ("move_facts", {}),
    ],
)
async def test_a_turn_of_another_user_is_not_found(
    hass: HomeAssistant, hass_admin_user: User, hass_read_only_user: User, service: str, data: dict[str, Any]
) -> None:
    async with open_house(hass, NO_MODEL, **ACTING) as house:
        asked = await call(house, "ask", hass_admin_user, text="unlock the front door")
        errors = []
        for turn_id in (asked["continuation_id"], "01ARZ3NDEKTSV4RRFFQ69G5FAV"):
            with pytest.raises(ServiceValidationError) as caught:
                await call(house, service, hass_read_only_user, continuation_id=turn_id, **data)
            errors.append(str(caught.value).replace(turn_id, "ID"))
        assert errors[0] == errors[1] == "There is nothing with the ID ID"
        assert hass.states.get("lock.front_door").state == "locked"


@pytest.mark.parametrize("service", ["reset_conversation", "export_conversation", "undo", "search"])
async def test_a_session_of_another_user_is_not_found(
    hass: HomeAssistant, hass_admin_user: User, hass_read_only_user: User, service: str
) -> None:
    async with open_house(hass, said("ok")) as house:
        asked = await call(house, "ask", hass_admin_user, text="a private pineapple")
        data = {"query": "pineapple"} if service == "search" else {}
        errors = []
        for session_id in (asked["session_id"], "01ARZ3NDEKTSV4RRFFQ69G5FAV"):
            with pytest.raises(ServiceValidationError) as caught:
                await call(house, service, hass_read_only_user, session_id=session_id, **data)
            errors.append(str(caught.value).replace(session_id, "ID"))
        assert errors[0] == errors[1] == "There is nothing with the ID ID"


async def test_an_automation_reaches_no_data_of_users(hass: HomeAssistant, hass_admin_user: User) -> None:
    async with open_house(hass, said("ok")) as house:
        asked = await call(house, "ask", hass_admin_user, text="a private pineapple")
        assert await call(house, "search", query="pineapple") == {"messages": []}
        with pytest.raises(ServiceValidationError, match="nothing with the ID"):
            await call(house, "export_conversation", session_id=asked["session_id"])
        with pytest.raises(ServiceValidationError, match="Only an administrator"):
            await call(house, "search", query="pineapple", user_id=hass_admin_user.id)


async def test_a_user_reaches_the_conversations_of_the_house(
    hass: HomeAssistant, hass_read_only_user: User
) -> None:
    async with open_house(hass, said("ok")) as house:
        await house.say("the shared pineapple", room="Kitchen")
        await house.say("the own pineapple", user=hass_read_only_user)
        found = await call(house, "search", hass_read_only_user, query="pineapple")
        assert [(each["text"], each["shared"]) for each in found["messages"]] == [
            ("the own pineapple", False),
            ("the shared pineapple", True),
        ]
        assert [each["role"] for each in found["messages"]] == ["user", "user"]


async def test_weak_hits_of_a_user_do_not_hide_the_best_one_of_the_house(
    hass: HomeAssistant, hass_read_only_user: User
) -> None:
    async with open_house(hass, said("ok")) as house:
        await house.say("the recipe of the pineapple cake", room="Kitchen")
        for number in range(3):
            await house.say(f"pineapple number {number}", user=hass_read_only_user)
        found = await call(house, "search", hass_read_only_user, query="pineapple cake recipe", limit=2)
        assert [each["shared"] for each in found["messages"]] == [False, True]
        assert found["messages"][1]["text"] == "the recipe of the pineapple cake"


async def test_an_administrator_may_name_a_user(
    hass: HomeAssistant, hass_admin_user: User, hass_read_only_user: User
) -> None:
    async with open_house(hass, said("ok")) as house:
        await house.say("a private pineapple", user=hass_read_only_user)
        assert (await call(house, "search", hass_admin_user, query="pineapple"))["messages"] == []
        for who in ({"user_id": hass_read_only_user.id}, {"person": "person.anna"}):
            hass.states.async_set("person.anna", "home", {"user_id": hass_read_only_user.id})
            found = await call(house, "search", hass_admin_user, query="pineapple", **who)
            assert [each["text"] for each in found["messages"]] == ["a private pineapple"]


async def test_only_an_administrator_may_name_another_user(
    hass: HomeAssistant, hass_admin_user: User, hass_read_only_user: User
) -> None:
    async with open_house(hass, said("ok")) as house:
        # An ordinary user does not learn which users exist.
        for user_id in (hass_admin_user.id, "nobody"):
            with pytest.raises(ServiceValidationError, match="Only an administrator"):
                await call(house, "search", hass_read_only_user, query="x", user_id=user_id)
        await call(house, "search", hass_read_only_user, query="x", user_id=hass_read_only_user.id)
        with pytest.raises(ServiceValidationError, match="no such user"):
            await call(house, "search", hass_admin_user, query="x", user_id="nobody")
        hass.states.async_set("person.bob", "home")
        for person in ("person.bob", "person.nobody"):
            with pytest.raises(ServiceValidationError, match="no user account"):
                await call(house, "search", hass_admin_user, query="x", person=person)


async def test_a_user_that_was_deleted_can_do_nothing(hass: HomeAssistant, hass_read_only_user: User) -> None:
    async with open_house(hass, said("ok")) as house:
        await hass.auth.async_remove_user(hass_read_only_user)
        with pytest.raises(ServiceValidationError, match="no such user"):
            await call(house, "search", hass_read_only_user, query="x")


async def test_a_process_of_home_assistant_acts_for_the_house(hass: HomeAssistant) -> None:
    async with open_house(hass, said("ok")) as house:
        supervisor = await hass.auth.async_create_system_user("Supervisor")
        await call(house, "ask", supervisor, text="what do you know?")
        assert len(await list_sessions(house)) == 1


# sessions


async def test_a_conversation_of_a_satellite_begins_anew(hass: HomeAssistant, hass_admin_user: User) -> None:
    async with open_house(hass, said("ok")) as house:
        await house.say("the first pineapple", room="Kitchen")
        await call(house, "reset_conversation", hass_admin_user, device_id=house.devices["Kitchen"])
        await house.say("sing it", room="Kitchen")
        assert "the first pineapple" not in house.read_prompts()[-1]
        with pytest.raises(ServiceValidationError, match="no such conversation"):
            await call(house, "reset_conversation", device_id=house.devices["Bedroom"])


async def test_an_agent_without_memory_has_no_conversation(hass: HomeAssistant) -> None:
    async with open_house(hass, said("ok"), session_scope="stateless") as house:
        await call(house, "ask", text="what do you know?")
        with pytest.raises(ServiceValidationError, match="no such conversation"):
            await call(house, "reset_conversation")


async def test_a_conversation_is_exported_as_sash_imports_it(
    hass: HomeAssistant, hass_admin_user: User
) -> None:
    async with open_house(hass, said("ok"), session_scope="user") as house:
        await house.say("the first pineapple", user=hass_admin_user)
        exported = await call(house, "export_conversation", hass_admin_user)
        assert exported["format"] == "sash.session"
        imported = await house.data.runtime.import_session(exported, owner="somebody")
        messages = await house.data.runtime.list_messages(imported.id, owner="somebody")
        assert messages[0].message.text == "the first pineapple"


async def test_a_search_finds_at_most_so_many_messages(hass: HomeAssistant) -> None:
    async with open_house(hass, said("ok")) as house:
        for number in range(3):
            await house.say(f"pineapple number {number}", room="Kitchen")
        await house.say("pineapple elsewhere", room="Bedroom")
        assert len((await call(house, "search", query="pineapple", limit=2))["messages"]) == 2
        found = await call(house, "search", query="pineapple", device_id=house.devices["Kitchen"])
        assert len(found["messages"]) == 3
        with pytest.raises(ServiceValidationError, match="at most 32 words"):
            await call(house, "search", query=" ".join(map(str, range(40))))


# turns


async def test_a_turn_is_cancelled_once(hass: HomeAssistant) -> None:
    async with open_house(hass, NO_MODEL, **ACTING) as house:
        asked = await call(house, "ask", text="unlock the front door")
        turn_id = asked["continuation_id"]
        cancelled = await call(house, "cancel", continuation_id=turn_id)
        assert cancelled == {"continuation_id": turn_id, "status": "cancelled"}
        again = await call(house, "cancel", continuation_id=turn_id)
        assert again["status"] == "already_final"
        with pytest.raises(ServiceValidationError, match="does not wait"):
            await call(house, "approve", continuation_id=turn_id, approved=True)


async def test_a_question_of_an_agent_that_was_removed_cannot_be_approved(hass: HomeAssistant) -> None:
    async with open_house(hass, NO_MODEL, **ACTING) as house:
        asked = await call(house, "ask", text="unlock the front door")
        [agent_id] = house.entry.subentries
        hass.config_entries.async_remove_subentry(house.entry, agent_id)
        await hass.async_block_till_done()
        with pytest.raises(ServiceValidationError, match="removed"):
            await call(house, "approve", continuation_id=asked["continuation_id"], approved=True)
        assert hass.states.get("lock.front_door").state == "locked"


async def test_a_conversation_that_is_deleted_meanwhile_is_not_found(hass: HomeAssistant) -> None:
    async with open_house(hass, Reply(chunks=[chunk("Well, ")], then="hang")) as house:
        asking = asyncio.create_task(call(house, "ask", text="what do you know?"))
        async with asyncio.timeout(10):
            while not house.wire.requests:
                await asyncio.sleep(0.01)
            [session] = await list_sessions(house)
            await house.data.runtime.delete_session(session.id, owner="house")
            with pytest.raises(ServiceValidationError, match="nothing with the ID"):
                await asking


async def test_a_turn_is_found_in_all_providers(hass: HomeAssistant) -> None:
    async with open_house(hass, NO_MODEL, **ACTING) as house:
        other = await add_provider(house)
        asked = await call(house, "ask", text="unlock the front door", agent="conversation.other")
        with pytest.raises(ServiceValidationError, match="nothing with the ID"):
            await call(
                house,
                "cancel",
                continuation_id=asked["continuation_id"],
                config_entry_id=house.entry.entry_id,
            )
        cancelled = await call(house, "cancel", continuation_id=asked["continuation_id"])
        assert cancelled["status"] == "cancelled"
        assert other.runtime_data.runtime.running_turns == 0


async def test_a_turn_that_was_not_interrupted_cannot_be_resumed(hass: HomeAssistant) -> None:
    async with open_house(hass, NO_MODEL, **ACTING) as house:
        asked = await call(house, "ask", text="unlock the front door")
        with pytest.raises(ServiceValidationError, match="waits for an approval"):
            await call(house, "resume", continuation_id=asked["continuation_id"])


async def test_a_denied_action_is_not_done(hass: HomeAssistant) -> None:
    async with open_house(hass, UNLOCK, said("As you wish."), **ACTING) as house:
        asked = await call(house, "ask", text="please unlock it")
        denied = await call(house, "approve", continuation_id=asked["continuation_id"], approved=False)
        assert denied["answer"] == "As you wish."
        assert [action["outcome"] for action in denied["actions"]] == ["denied"]
        assert hass.states.get("lock.front_door").state == "locked"


async def test_the_agent_cannot_approve_its_own_actions(hass: HomeAssistant) -> None:
    async with open_house(hass, UNLOCK, allow_actuation=True, allowlisted_services=["*"]) as house:
        asked = await call(house, "ask", text="please unlock it", conversation_id="a")
        answer = {"continuation_id": asked["continuation_id"], "approved": True}
        house.wire.replies[:] = [calls("call_service", service="sash.approve", data=answer), said("Done.")]
        house.wire.requests.clear()
        await call(house, "ask", text="and now what?", conversation_id="b")
        assert "denylist" in house.read_prompts()[-1]
        assert hass.states.get("lock.front_door").state == "locked"


def unlock_both() -> Reply:
    """An answer of the model that unlocks two doors."""
    replies = [
        calls("call_service", f"call_{number}", service="lock.unlock", entity_ids=[entity_id])
        for number, entity_id in enumerate(LOCKS)
    ]
    tool_calls = [reply.chunks[0]["choices"][0]["delta"]["tool_calls"][0] for reply in replies]
    for index, each in enumerate(tool_calls):
        each["index"] = index
    return Reply(chunks=[chunk(calls=tool_calls), chunk(finish="tool_calls")])


async def test_an_approval_is_only_for_what_was_asked(hass: HomeAssistant) -> None:
    async with open_house(hass, unlock_both(), said("Both are open."), **ACTING) as house:
        asked = await call(house, "ask", text="let everybody in, please")
        assert [each["question"] for each in asked["waiting_calls"]] == ["Unlock the front door?"]
        asked = await call(house, "approve", continuation_id=asked["continuation_id"], approved=True)
        assert [each["question"] for each in asked["waiting_calls"]] == ["Unlock the Openable lock?"]
        assert hass.states.get("lock.openable_lock").state == "locked"
        done = await call(house, "approve", continuation_id=asked["continuation_id"], approved=True)
        assert done["answer"] == "Both are open."
        assert [action["outcome"] for action in done["actions"]] == ["done", "done"]


async def test_a_question_is_answered_by_its_call_id(hass: HomeAssistant) -> None:
    async with open_house(hass, unlock_both(), said("One is open."), **ACTING) as house:
        asked = await call(house, "ask", text="let everybody in, please")
        turn_id = asked["continuation_id"]
        with pytest.raises(ServiceValidationError, match="no call wrong waits"):
            await call(house, "approve", continuation_id=turn_id, approved=True, call_id="wrong")
        waiting = await call(house, "approve", continuation_id=turn_id, approved=True, call_id="call_0")
        assert waiting["status"] == "awaiting_approval"
        assert [each["call_id"] for each in waiting["waiting_calls"]] == ["call_1"]
        done = await call(house, "approve", continuation_id=turn_id, approved=False, call_id="call_1")
        assert [action["outcome"] for action in done["actions"]] == ["done", "denied"]


async def test_an_approval_obeys_options_that_have_changed(hass: HomeAssistant) -> None:
    async with open_house(hass, UNLOCK, said("I may not."), **ACTING) as house:
        asked = await call(house, "ask", text="please unlock it")
        [subentry] = house.entry.subentries.values()
        options = {**subentry.data, "allow_actuation": False}
        hass.config_entries.async_update_subentry(house.entry, subentry, data=options)
        await hass.async_block_till_done()
        await house.data.runtime.home_ready(timeout_s=30)
        done = await call(house, "approve", continuation_id=asked["continuation_id"], approved=True)
        assert [action["outcome"] for action in done["actions"]] == ["denied"]
        assert hass.states.get("lock.front_door").state == "locked"


async def test_the_last_action_is_undone(hass: HomeAssistant, hass_read_only_user: User) -> None:
    async with open_house(hass, NO_MODEL, **ACTING) as house:
        assert hass.states.get("light.bed_light").state == "off"
        await house.say("turn on the bed light", room="Bedroom")
        assert hass.states.get("light.bed_light").state == "on"
        undone = await call(house, "undo", language="de-AT")
        assert undone["answer"] == "Rückgängig gemacht: Bed Light ist wieder aus."
        assert hass.states.get("light.bed_light").state == "off"
        assert [action["verified"] for action in undone["actions"]] == [True]


async def test_the_last_action_of_a_session_is_undone(hass: HomeAssistant) -> None:
    async with open_house(hass, NO_MODEL, **ACTING) as house:
        await house.say("turn on the bed light", room="Bedroom")
        await house.say("turn off the kitchen lights", room="Kitchen")
        await call(house, "undo", device_id=house.devices["Bedroom"], language="xx")
        assert hass.states.get("light.bed_light").state == "off"
        assert hass.states.get("light.kitchen_lights").state == "off"


async def test_an_undo_that_needs_an_approval_asks_by_notification(hass: HomeAssistant) -> None:
    async with open_house(hass, NO_MODEL, require_confirmation=["light"], **ACTING) as house:
        await house.say("turn on the bed light", room="Bedroom")
        await house.say("yes", room="Bedroom")
        asked = await call(house, "undo")
        turn_id, [waiting] = asked["continuation_id"], asked["waiting_calls"]
        assert (await read_notification(hass, turn_id, 61)).startswith(waiting["question"])
        await call(house, "approve", continuation_id=turn_id, approved=True)
        assert hass.states.get("light.bed_light").state == "off"


async def test_an_undo_drops_an_open_question_as_the_sentence_does(hass: HomeAssistant) -> None:
    async with open_house(hass, NO_MODEL, **ACTING) as house:
        await house.say("turn on the bed light", room="Bedroom")
        await house.say("unlock the front door", room="Bedroom")
        async with asyncio.timeout(10):
            undone = await call(house, "undo")
        assert (undone["status"], hass.states.get("light.bed_light").state) == ("completed", "off")
        assert house.data.late_turns.open_questions == []
        await house.say("yes", room="Bedroom")
        assert hass.states.get("lock.front_door").state == "locked"


async def test_a_resumed_turn_that_needs_an_approval_asks_by_notification(hass: HomeAssistant) -> None:
    async with open_house(
        hass, Reply(chunks=[], then="hang"), UNLOCK, said("It is open."), **ACTING
    ) as house:
        talk = asyncio.create_task(house.say("let them in, please", room="Kitchen"))
        async with asyncio.timeout(10):
            while not house.wire.requests:
                await asyncio.sleep(0)
        await hass.config_entries.async_reload(house.entry.entry_id)
        await talk
        await house.data.runtime.home_ready(timeout_s=30)
        [session] = await list_sessions(house)
        [turn] = await house.data.store.list_continuations("house", session.id)
        asked = await call(house, "resume", continuation_id=turn.id)
        [waiting] = asked["waiting_calls"]
        assert (await read_notification(hass, turn.id, 61)).startswith(waiting["question"])


async def read_notification(hass: HomeAssistant, turn_id: str, after_s: float) -> str:
    """Return the text of the notification about a turn that is there after some seconds."""
    async_fire_time_changed(hass, dt_util.utcnow() + timedelta(seconds=after_s))
    await hass.async_block_till_done()
    notifications = persistent_notification._async_get_or_create_notifications(hass)
    return str(notifications[f"sash_{turn_id}"]["message"])


async def test_without_an_action_nothing_is_undone(hass: HomeAssistant) -> None:
    async with open_house(hass, said("ok")) as house:
        await house.say("hello there", room="Kitchen")
        for service in ("undo", "explain"):
            with pytest.raises(ServiceValidationError, match="done nothing"):
                await call(house, service)


async def test_a_conversation_of_a_removed_agent_does_nothing_more(hass: HomeAssistant) -> None:
    async with open_house(hass, NO_MODEL, **ACTING) as house:
        await house.say("turn on the bed light", room="Bedroom")
        [session] = await list_sessions(house)
        [subentry_id] = house.entry.subentries
        hass.config_entries.async_remove_subentry(house.entry, subentry_id)
        await hass.async_block_till_done()
        with pytest.raises(ServiceValidationError, match="was removed"):
            await call(house, "undo", session_id=session.id)
        assert hass.states.get("light.bed_light").state == "on"


# notes


async def test_facts_of_users_and_of_the_house(
    hass: HomeAssistant, hass_read_only_user: User, hass_admin_user: User
) -> None:
    async with open_house(hass, said("ok")) as house:
        own = await call(house, "remember", hass_read_only_user, text="My filter is blue.")
        assert own["fact"]["shared"] is False
        shared = await call(house, "remember", hass_read_only_user, text="The filter is red.", shared=True)
        assert shared["fact"]["shared"] is True
        automatic = await call(house, "remember", text="The filter is new.")
        assert automatic["fact"]["shared"] is True
        runtime = house.data.runtime
        assert len(await runtime.list_facts(owner="house")) == 2

        dropped = await call(house, "forget", hass_admin_user, about="filter red")
        assert [(fact["text"], fact["shared"]) for fact in dropped["facts"]] == [("The filter is red.", True)]
        assert (await call(house, "forget", hass_admin_user, about="blue"))["facts"] == []
        assert (await call(house, "forget", about="blue"))["facts"] == []
        dropped = await call(house, "forget", hass_read_only_user, about=own["fact"]["id"])
        assert [(fact["text"], fact["shared"]) for fact in dropped["facts"]] == [
            ("My filter is blue.", False)
        ]


async def test_with_two_providers_a_fact_needs_the_name_of_one(hass: HomeAssistant) -> None:
    async with open_house(hass, said("ok")) as house:
        other = await add_provider(house)
        with pytest.raises(ServiceValidationError):
            await call(house, "remember", text="The filter is new.")
        await call(house, "remember", text="The filter is new.", config_entry_id=other.entry_id)
        assert len(await other.runtime_data.runtime.list_facts(owner="house")) == 1


async def test_an_action_is_explained_by_its_sentence(
    hass: HomeAssistant, hass_read_only_user: User, hass_admin_user: User
) -> None:
    async with open_house(hass, NO_MODEL, **ACTING) as house:
        await house.say("turn on the bed light", room="Bedroom")
        await house.say("turn off the kitchen lights", user=hass_admin_user)
        newest = await call(house, "explain", hass_admin_user)
        assert newest["sentence"] == "turn off the kitchen lights"
        assert newest["user_id"] == hass_admin_user.id
        light = await call(house, "explain", hass_admin_user, entity_id="light.bed_light")
        assert light["sentence"] == "turn on the bed light"
        assert light["device_id"] == house.devices["Bedroom"]
        assert (light["service"], light["outcome"], light["verified"]) == ("light.turn_on", "done", True)
        # Another user does not learn what the administrator said.
        assert (await call(house, "explain", hass_read_only_user))["sentence"] == "turn on the bed light"
        with pytest.raises(ServiceValidationError, match="done nothing"):
            await call(house, "explain", hass_read_only_user, entity_id="light.kitchen_lights")


async def test_that_was_anna(hass: HomeAssistant, hass_read_only_user: User, hass_admin_user: User) -> None:
    async with open_house(hass, NO_MODEL) as house:
        await house.say("remember that my bike is green", room="Kitchen")
        [session] = await list_sessions(house)
        [turn] = await house.data.runtime.list_turns(session.id, owner="house")
        hass.states.async_set("person.anna", "home", {"user_id": hass_read_only_user.id})
        moved = await call(house, "move_facts", continuation_id=turn.id, person="person.anna")
        [fact] = moved["facts"]
        assert "bike is green" in fact["text"]
        assert fact["shared"] is False
        runtime = house.data.runtime
        assert await runtime.list_facts(owner="house") == ()
        assert len(await runtime.list_facts(owner=f"user:{hass_read_only_user.id}")) == 1
        [turn] = await runtime.list_turns(session.id, owner="house")
        assert turn.request.caller is not None
        assert (turn.request.caller.user_id, turn.request.caller.certainty) == (
            hass_read_only_user.id,
            "named",
        )


async def test_a_sentence_says_that_it_was_anna(
    hass: HomeAssistant, hass_read_only_user: User, hass_admin_user: User
) -> None:
    """The automation of the documentation, on the satellite that was spoken to."""
    hass.states.async_set("person.anna", "home", {"user_id": hass_read_only_user.id})
    automation = {
        "triggers": [{"trigger": "conversation", "command": ["that was {name}"]}],
        "actions": [
            {
                "action": "sash.move_facts",
                "data": {
                    "device_id": "{{ trigger.device_id }}",
                    "person": "person.{{ trigger.slots.name | lower }}",
                },
            },
            {"set_conversation_response": "Good to know."},
        ],
    }
    async with open_house(hass, said("Well.")) as house:
        assert await async_setup_component(hass, "automation", {"automation": automation})
        await hass.async_block_till_done()
        await house.say("remember that the cellar is cold", room="Bedroom")
        await house.say("remember that my bike is green", room="Kitchen")
        await house.say("tell me a story", room="Kitchen")
        answer = await conversation.async_converse(
            hass,
            "that was Anna",
            None,
            Context(),
            agent_id=conversation.HOME_ASSISTANT_AGENT,
            device_id=house.devices["Kitchen"],
        )
        assert said_by(answer) == "Good to know."
        [fact] = await house.data.runtime.list_facts(owner=f"user:{hass_read_only_user.id}")
        assert "bike is green" in fact.text
        [other] = await house.data.runtime.list_facts(owner="house")
        assert "cellar" in other.text
        with pytest.raises(ServiceValidationError, match="no fact"):
            await call(house, "move_facts", hass_read_only_user, device_id=house.devices["Kitchen"])


async def test_a_user_may_only_say_that_it_was_them(
    hass: HomeAssistant, hass_read_only_user: User, hass_admin_user: User
) -> None:
    async with open_house(hass, NO_MODEL) as house:
        await house.say("remember that my bike is green", room="Kitchen")
        [session] = await list_sessions(house)
        [turn] = await house.data.runtime.list_turns(session.id, owner="house")
        with pytest.raises(ServiceValidationError, match="Only an administrator"):
            await call(
                house, "move_facts", hass_read_only_user, continuation_id=turn.id, user_id=hass_admin_user.id
            )
        with pytest.raises(ServiceValidationError, match="Say who spoke"):
            await call(house, "move_facts", continuation_id=turn.id)
        moved = await call(house, "move_facts", hass_read_only_user, continuation_id=turn.id)
        assert len(moved["facts"]) == 1


async def test_a_store_that_fails_is_an_error_without_a_traceback(hass: HomeAssistant) -> None:
    async with open_house(hass, said("ok")) as house:
        await house.data.store.close()
        with pytest.raises(
            HomeAssistantError, match="Sash could not do this: the store is not open"
        ) as caught:
            await call(house, "search", query="x")
        assert not isinstance(caught.value, ServiceValidationError)
        await house.data.store.open()


@pytest.mark.parametrize(("scope", "count"), [("device", 2), ("conversation", 3), ("stateless", 3)])
async def test_a_script_of_the_agent_that_asks_the_agent_ends(
    hass: HomeAssistant, scope: str, count: int
) -> None:
    """It would wait for itself in the same session, and call itself for ever in new ones."""
    run_script = calls("call_service", service="script.ask_again")
    options = {"allow_actuation": True, "allowlisted_services": ["*"], "session_scope": scope}
    async with open_house(hass, run_script, **options) as house:
        errors: list[str] = []

        async def ask_again(asked: ServiceCall) -> None:
            place = {"device_id": house.devices["Kitchen"], "text": "how is the rose?"}
            try:
                await hass.services.async_call(
                    DOMAIN, "ask", place, blocking=True, return_response=True, context=asked.context
                )
            except HomeAssistantError as error:
                errors.append(str(error))
                house.wire.replies[:] = [said("Enough.")]
                raise

        hass.services.async_register("test", "ask_again", ask_again)
        script = {"ask_again": {"mode": "parallel", "sequence": [{"action": "test.ask_again"}]}}
        assert await async_setup_component(hass, "script", {"script": script})
        async_expose_entity(hass, "conversation", "script.ask_again", True)
        await hass.async_block_till_done()
        async with asyncio.timeout(20):
            while "script.ask_again" not in house.data.runtime.home.services:
                await asyncio.sleep(0.01)
            answered = await house.say("run it please, will you?", room="Kitchen")
        assert said_by(answered) == "Enough."
        assert "I am still answering" in errors[0]
        assert len(house.read_prompts()) >= count
        assert len(house.read_prompts()) < 6
