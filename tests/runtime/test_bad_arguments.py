"""Wrong arguments of the runtime's methods raise `InvalidInput`, and nothing is stored."""

import json
from datetime import datetime
from math import nan

import pytest

from sash import ModelConfig, SessionPolicy
from sash.errors import InvalidExport, InvalidInput, InvalidText, MessageTooLarge, NotAwaitingApproval
from sash.testing import calling
from sash.values.sessions import Defaults
from tests.runtime.policies import CAREFUL
from tests.runtime.talk import turn
from tests.tools import tool

SURROGATE = "a\ud800"
NOT_OBJECTS = [["x"], [], "x", "", 5, 0, True, nan, {"x"}, b"x", datetime(2026, 1, 1)]
DEEP = {}
for _ in range(100):
    DEEP = {"a": DEEP}
NOT_JSON = [{"when": datetime(2026, 1, 1)}, {"n": nan}, {"a": {1}}, {"a": b"x"}, DEEP]
NOT_TEXT = [5, b"x", ["x"], True, nan]


async def check_readable(runtime, session):
    """Check that the session and the list of sessions can be read."""
    assert await runtime.get_session(session.id) == session
    assert session in (await runtime.list_sessions()).items


@pytest.mark.parametrize("context", [*NOT_OBJECTS, *NOT_JSON], ids=ascii)
async def test_a_context_that_is_not_a_json_object_is_refused(run, context):
    runtime = await run()
    with pytest.raises(InvalidInput):
        await runtime.start_session(context=context)
    assert (await runtime.list_sessions()).items == ()


@pytest.mark.parametrize("context", [{"a": SURROGATE}, {SURROGATE: 1}], ids=["value", "key"])
async def test_a_context_with_a_lone_surrogate_is_refused(run, context):
    runtime = await run()
    with pytest.raises(InvalidText):
        await runtime.start_session(context=context)
    assert (await runtime.list_sessions()).items == ()


async def test_a_context_is_copied_without_secrets_and_limited_in_size(run):
    runtime, context = await run(), {"mine": [1, (2,)], "password": "hunter22"}
    session = await runtime.start_session(context=context)
    context["mine"].append(3)
    assert session.context == {"mine": [1, [2]], "password": "[redacted]"}
    await check_readable(runtime, session)
    assert (await runtime.start_session(context=None)).context == {}
    with pytest.raises(MessageTooLarge):
        await runtime.start_session(context={"a": "x" * 20_000})


@pytest.mark.parametrize("field", ["context", "owner", "area", "name", "preferences"])
async def test_a_wrong_field_of_a_session_is_refused_before_the_store_is_asked(run, field):
    runtime = await run(defaults=Defaults(max_sessions=1))
    await runtime.start_session()
    with pytest.raises(InvalidInput):
        await runtime.start_session(**{field: ["x"]})


@pytest.mark.parametrize("preferences", [*NOT_OBJECTS, *NOT_JSON], ids=ascii)
async def test_preferences_that_are_not_a_json_object_are_refused(run, preferences):
    runtime = await run()
    session = await runtime.start_session()
    with pytest.raises(InvalidInput):
        await runtime.set_preferences(session.id, preferences)
    with pytest.raises(InvalidInput):
        await runtime.start_session(preferences=preferences)
    await check_readable(runtime, session)


async def test_no_preferences_change_none(run):
    runtime = await run()
    session = await runtime.start_session(preferences={"language": "de"})
    changed = await runtime.set_preferences(session.id, None)
    assert changed.preferences == {"language": "de"}


async def test_keys_that_json_turns_into_text_are_accepted(run):
    runtime = await run()
    session = await runtime.start_session(preferences={1: "a"}, context={2: "b"})
    assert (session.preferences, session.context) == ({"1": "a"}, {"2": "b"})
    sent = await runtime.send_message(session.id, "hi", metadata={3: "c"}, planner_hints={4: "d"})
    assert (sent.request.metadata, sent.request.planner_hints) == ({"3": "c"}, {"4": "d"})


@pytest.mark.parametrize("attachments", [None, (), []], ids=repr)
async def test_no_attachments_are_accepted(run, attachments):
    runtime = await run()
    session = await runtime.start_session()
    result = await turn(runtime, session, attachments=attachments)
    assert (result.status, result.continuation.request.attachments) == ("completed", ())


@pytest.mark.parametrize("attachments", [5, True, "x", b"x", {"type": "image_url"}, [5], [None]], ids=repr)
async def test_attachments_that_are_not_a_list_of_parts_are_refused(run, attachments):
    runtime = await run()
    session = await runtime.start_session()
    with pytest.raises(InvalidInput):
        await runtime.send_message(session.id, "hi", attachments=attachments)
    assert await runtime.store.list_continuations("local", session.id) == []


@pytest.mark.parametrize("text", NOT_TEXT, ids=repr)
async def test_only_strings_are_accepted_as_text(run, text):
    runtime = await run()
    session = await runtime.start_session()
    for call in (
        runtime.send_message(session.id, text),
        runtime.send_message(session.id, "hi", idempotency_key=text),
        runtime.record_turn(session.id, text),
        runtime.record_turn(session.id, "hi", text),
        runtime.ask(text),
        runtime.start_session(name=text),
        runtime.start_session(area=text),
        runtime.remember(text, session_id=session.id),
        runtime.pin(text, session_id=session.id),
        runtime.search(text),
    ):
        with pytest.raises(InvalidInput):
            await call
    with pytest.raises(InvalidInput):
        ModelConfig(text)
    with pytest.raises(InvalidInput):
        SessionPolicy(allowlisted_services=[text])
    assert (await runtime.list_sessions()).items == (session,)


async def test_a_lone_surrogate_has_an_error_of_its_own(run):
    runtime = await run()
    session = await runtime.start_session()
    for call in (
        runtime.send_message(session.id, SURROGATE),
        runtime.send_message(session.id, "hi", idempotency_key=SURROGATE),
        runtime.send_message(session.id, "hi", metadata={"a": SURROGATE}),
        runtime.record_turn(session.id, SURROGATE),
        runtime.record_turn(session.id, "hi", SURROGATE),
        runtime.ask(SURROGATE),
        runtime.start_session(name=SURROGATE),
        runtime.start_session(area=SURROGATE),
        runtime.start_session(preferences={"a": SURROGATE}),
        runtime.set_preferences(session.id, {"a": SURROGATE}),
        runtime.remember(SURROGATE, session_id=session.id),
        runtime.search(SURROGATE),
    ):
        with pytest.raises(InvalidText, match="surrogate"):
            await call
    with pytest.raises(InvalidText, match="surrogate"):
        ModelConfig(SURROGATE)
    with pytest.raises(InvalidText, match="surrogate"):
        SessionPolicy(allowlisted_services=[SURROGATE])
    assert (await runtime.list_sessions()).items == (session,)


@pytest.mark.parametrize("part", ["policy", "budgets", "window", "model"])
async def test_an_export_with_an_unknown_field_is_refused(run, part):
    runtime = await run()
    session = await runtime.start_session()
    export = await runtime.export_session(session.id)
    export["session"][part]["later"] = 1
    await runtime.delete_session(session.id)
    with pytest.raises(InvalidExport, match="later"):
        await runtime.import_session(export)


async def wait_for_approval(run, call_id):
    """Return a runtime, and a turn of it whose call with this id waits for an approval."""
    unlock = tool("lock.unlock", lambda arguments, context: "open", action=True)
    runtime = await run(calling("lock.unlock", call_id), "It is open.", tools=[unlock])
    waiting = await turn(runtime, await runtime.start_session(policy=CAREFUL))
    assert waiting.status == "awaiting_approval"
    return runtime, waiting.continuation.id


async def test_an_imported_call_with_a_long_id_can_be_approved(run):
    runtime, turn_id = await wait_for_approval(run, "c1")
    waiting = await runtime.store.get_continuation("local", turn_id)
    export = await runtime.export_session(waiting.session_id)
    await runtime.delete_session(waiting.session_id)
    call_id = "call_" + "x" * 400
    await runtime.import_session(json.loads(json.dumps(export).replace('"c1"', f'"{call_id}"')))
    assert (await runtime.approve(turn_id, call_id)).status == "running"


@pytest.mark.parametrize("call_id", ["", "other", "x" * 400, None, 5, ["c1"], {"c1": 1}], ids=repr)
async def test_an_approval_of_a_call_that_does_not_wait_is_refused(run, call_id):
    runtime, turn_id = await wait_for_approval(run, "c1")
    with pytest.raises(NotAwaitingApproval, match="these do: c1"):
        await runtime.approve(turn_id, call_id)


@pytest.mark.parametrize("approved", [1, "false", None], ids=repr)
async def test_an_approval_is_true_or_false(run, approved):
    runtime, turn_id = await wait_for_approval(run, "c1")
    with pytest.raises(InvalidInput, match="True or False"):
        await runtime.approve(turn_id, "c1", approved)
    assert (await runtime.await_continuation(turn_id)).status == "awaiting_approval"


@pytest.mark.parametrize("wrong", [[], {}, b"x", 5, None], ids=ascii)
async def test_an_id_that_is_not_a_text_is_refused(run, wrong):
    runtime = await run()
    session = await runtime.start_session()
    with pytest.raises(InvalidInput, match="session_id must be a string"):
        await runtime.send_message(wrong, "hi")
    with pytest.raises(InvalidInput, match="session_id must be a string"):
        await runtime.get_session(wrong)
    if wrong is not None:
        with pytest.raises(InvalidInput, match="session_id must be a string"):
            await runtime.search("hi", session_id=wrong)
        with pytest.raises(InvalidInput, match="cursor must be"):
            await runtime.list_sessions(cursor=wrong)
    assert (await runtime.list_sessions()).items == (session,)


async def test_an_attachment_with_a_key_that_is_not_text_is_refused(run):
    runtime = await run()
    session = await runtime.start_session()
    with pytest.raises(InvalidInput):
        await runtime.send_message(session.id, "hi", attachments=[{b"\xff": 1, "type": "image_url"}])
