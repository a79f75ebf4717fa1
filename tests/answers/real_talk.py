"""Holds a conversation of the table in a real Home Assistant, with Sash or with Home Assistant's own agent."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Protocol

from sash.home.remote import RemoteHome, Timing
from tests.answers.house_connection import HouseConnection, find_changed
from tests.answers.house_states import HouseStates
from tests.answers.judge import Heard
from tests.answers.real_house import TableHouse
from tests.answers.sash_talk import WAIT_S, SashTalk, TalkRuntime, TurnTimes, Wrap
from tests.answers.table import Case, Then

OWN_AGENT = "conversation.home_assistant"
CASE_WITHIN_S = 90


class Talk(Protocol):
    """One conversation with an agent."""

    async def say(self, text: str) -> str: ...

    async def list_waiting(self) -> tuple[str, ...]: ...

    async def fire(self) -> None: ...

    async def end(self) -> None: ...


class OwnAgentTalk:
    """One conversation with Home Assistant's default agent."""

    def __init__(self, connection: HouseConnection, house: TableHouse, case: Case) -> None:
        self._connection = connection
        self._language = case.language
        self._device_id = None if case.area is None else house.devices[case.area]
        self._conversation_id: str | None = None

    async def say(self, text: str) -> str:
        """Say a sentence, and return the spoken answer."""
        result = await self._connection.request(
            "conversation/process",
            agent_id=OWN_AGENT,
            text=text,
            language=self._language,
            conversation_id=self._conversation_id,
            device_id=self._device_id,
        )
        self._conversation_id = result["conversation_id"]
        return str(result["response"]["speech"].get("plain", {}).get("speech") or "")

    async def list_waiting(self) -> tuple[str, ...]:
        """Return nothing: Home Assistant does not tell which commands it has put off."""
        return ()

    async def fire(self) -> None:
        """Do nothing: Home Assistant fires what is due by itself."""

    async def end(self) -> None:
        """Do nothing: a conversation ends by itself."""


class RealTalks:
    """The house, and both agents in it."""

    def __init__(self, house: TableHouse, connection: HouseConnection, runtime: TalkRuntime) -> None:
        self._house = house
        self._connection = connection
        self._runtime = runtime
        self._states = HouseStates(connection)

    @classmethod
    @asynccontextmanager
    async def open(
        cls, house: TableHouse, times: TurnTimes, wrap: Wrap | None = None
    ) -> AsyncIterator["RealTalks"]:
        """Connect to a house that runs. `times` are those of Sash, and `wrap` is put around its intents."""
        home = RemoteHome(house.url, house.token, timing=Timing(retry_s=0.05, starting_s=0.05))
        async with (
            HouseConnection.connect(house) as connection,
            TalkRuntime(times, wrap, home=home) as runtime,
        ):
            await runtime.home_ready(timeout_s=WAIT_S)
            talks = cls(house, connection, runtime)
            await talks._states.remember()
            yield talks

    @property
    def unrestored(self) -> set[str]:
        """The entities that did not come back to their first state."""
        return self._states.unrestored

    async def hold_with_sash(self, case: Case) -> Heard:
        return await self._hold(case, SashTalk(self._runtime, case))

    async def hold_with_own_agent(self, case: Case) -> Heard:
        return await self._hold(case, OwnAgentTalk(self._connection, self._house, case))

    async def _hold(self, case: Case, talk: Talk) -> Heard:
        """Say the sentences of a case, return what a person heard and saw, and restore the house."""
        try:
            async with asyncio.timeout(CASE_WITHIN_S):
                return await self._talk(case, talk)
        finally:
            await talk.end()
            await self._states.restore()

    async def _talk(self, case: Case, talk: Talk) -> Heard:
        await self._states.set(case.states)
        for item in case.before:
            if isinstance(item, Then):
                await self._states.set(item.set)
            else:
                await talk.say(item)
        before = await self._connection.settle()
        called = self._connection.count_calls()
        answer = await talk.say(case.say)
        states = await self._connection.settle()
        changed, calls = find_changed(before, states), self._connection.list_calls(called)
        waiting = await talk.list_waiting()
        if case.then is not None:
            await self._states.set(case.then.set)
            await talk.fire()
            states = await self._connection.settle()
        return Heard(answer, states, changed, calls, waiting)


def can_be_held(case: Case) -> bool:
    """Return whether a case belongs to the real house, and needs no jump of its clock."""
    pauses = [item for item in (*case.before, case.then) if isinstance(item, Then)]
    return "ha" in case.houses and not any(pause.advance_s for pause in pauses)
