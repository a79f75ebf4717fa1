"""The session that `sash chat` continues or starts."""

import asyncio

import pytest

from sash import Runtime
from sash.app.access import Caller
from sash.app.service import AgentService
from sash.cli.session_choice import SessionChoice
from sash.errors import Forbidden, InvalidInput, SessionExists
from sash.stores.memory import MemoryStore
from sash.testing import FakeClock, ScriptedModel
from sash.values.requests import StartSession
from sash.values.sessions import SessionPolicy

WAIT_S = 60
ANN = Caller("ann")
SIXTY_DAYS_S = 60 * 86_400


class SimultaneousStore(MemoryStore):
    """A store in which two callers look for a name before either of them can start the session."""

    def __init__(self, **options):
        super().__init__(**options)
        self._both_have_looked = asyncio.Barrier(2)

    async def find_session(self, owner, name):
        found = await super().find_session(owner, name)
        await self._both_have_looked.wait()
        return found


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
async def open_service(clock):
    """Return a function that opens a service on a store."""
    opened = []

    async def open_service(store=None):
        runtime = Runtime(store or MemoryStore(clock=clock), ScriptedModel("ok"), clock=clock)
        await runtime.open()
        opened.append(runtime)
        return AgentService(runtime)

    yield open_service
    for runtime in opened:
        await runtime.close()


async def expire(service, clock):
    clock.advance(SIXTY_DAYS_S)
    await service.runtime.sweep()


@pytest.mark.parametrize("name", [None, "kitchen"])
async def test_two_chats_that_start_at_once_share_one_session(open_service, clock, name):
    service = await open_service(SimultaneousStore(clock=clock))
    choice = SessionChoice(name=name)
    async with asyncio.timeout(WAIT_S):
        first, second = await asyncio.gather(choice.resolve(service, ANN), choice.resolve(service, ANN))
    assert first == second
    assert first.name == (name or "chat")
    assert (await service.list_sessions(ANN)).items == (first,)


async def test_a_chat_that_starts_second_with_another_area_gets_a_session_of_its_own(open_service, clock):
    service = await open_service(SimultaneousStore(clock=clock))
    choices = SessionChoice(area="Kitchen"), SessionChoice(area="Garage")
    async with asyncio.timeout(WAIT_S):
        found = await asyncio.gather(*(choice.resolve(service, ANN) for choice in choices))
    assert [session.area for session in found] == ["Kitchen", "Garage"]
    assert {session.name for session in found} == {"chat", None}


async def test_an_expired_session_is_reopened_only_by_its_id_or_a_given_name(open_service, clock):
    service = await open_service()
    chat = await SessionChoice().resolve(service, ANN)
    kitchen = await SessionChoice(name="kitchen").resolve(service, ANN)
    unnamed = await SessionChoice(new=True).resolve(service, ANN)
    await expire(service, clock)
    again = await SessionChoice(name="kitchen").resolve(service, ANN)
    assert (again.id, again.status) == (kitchen.id, "active")
    other = await SessionChoice().resolve(service, ANN)
    assert other.id != chat.id
    assert other.name == "chat"
    by_id = await SessionChoice(session_id=unnamed.id).resolve(service, ANN)
    assert (by_id.id, by_id.status) == (unnamed.id, "active")


async def test_an_ended_session_gives_its_name_to_the_next(open_service):
    service = await open_service()
    ended = await SessionChoice(name="kitchen").resolve(service, ANN)
    await service.end_session(ANN, ended.id)
    started = await SessionChoice(name="kitchen").resolve(service, ANN)
    assert started.id != ended.id
    assert started.name == "kitchen"


async def test_a_session_with_another_policy_or_area_is_not_continued(open_service):
    service = await open_service()
    chat = await SessionChoice(area="Kitchen").resolve(service, ANN)
    assert await SessionChoice(area="Kitchen").resolve(service, ANN) == chat
    for choice in (SessionChoice(area="Garage"), SessionChoice(services=("light",))):
        started = await choice.resolve(service, ANN)
        assert started.name is None
        assert started.area == choice.area
        assert started.policy.allow_actuation == bool(choice.services)
    with pytest.raises(InvalidInput, match="choose another session"):
        await SessionChoice(session_id=chat.id, services=("light",)).resolve(service, ANN)


async def test_the_language_of_a_continued_session_changes(open_service):
    service = await open_service()
    german = await SessionChoice(language="de").resolve(service, ANN)
    assert german.preferences == {"language": "de"}
    english = await SessionChoice(language="en").resolve(service, ANN)
    assert (english.id, english.preferences) == (german.id, {"language": "en"})
    assert await SessionChoice().resolve(service, ANN) == english


async def test_new_starts_a_session_and_never_takes_a_name_in_use(open_service):
    service = await open_service()
    chat = await SessionChoice().resolve(service, ANN)
    new = await SessionChoice(new=True).resolve(service, ANN)
    assert (new.id != chat.id, new.name) == (True, None)
    with pytest.raises(SessionExists):
        await SessionChoice(new=True, name="chat").resolve(service, ANN)


async def test_opening_a_session_needs_the_scopes_of_starting_it(open_service):
    service = await open_service()
    may_act = StartSession(name="chat", policy=SessionPolicy(allow_actuation=True))
    for scopes, lacking in ({"read"}, "converse"), ({"read", "converse"}, "act"):
        with pytest.raises(Forbidden, match=f"the scope '{lacking}'"):
            await service.open_session(Caller("ann", frozenset(scopes)), may_act)


async def test_reopening_a_session_needs_the_scope_converse(open_service):
    service = await open_service()
    chat = await SessionChoice().resolve(service, ANN)
    with pytest.raises(Forbidden, match="the scope 'converse'"):
        await service.reopen_session(Caller("ann", frozenset({"read"})), chat.id)
