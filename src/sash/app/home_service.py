"""Authorises callers who look at the home and at the agent's actions in it."""

import asyncio

from sash.app.access import Caller
from sash.app.action_view import ActionList
from sash.app.home_view import HomeShown
from sash.app.service import AgentService
from sash.errors import HomeUnavailable, LastActionChanged
from sash.home.index import HomeIndex
from sash.intents.undo_sentence import choose_undo_sentence
from sash.values.continuations import Continuation
from sash.values.requests import SendMessage, Undo


class HomeService:
    """The home and the agent's actions, for callers with an owner and scopes. Methods raise `Forbidden`."""

    def __init__(self, service: AgentService) -> None:
        self._service = service

    async def show_home(self, caller: Caller, language: str | None = None) -> HomeShown:
        """Return the home as the agent sees it. `language` is the language of the states in words."""
        caller.need("read")
        async with self._service.shares.use(caller.owner, "report"):
            return await asyncio.to_thread(HomeShown.of, self._service.runtime.home, language)

    async def list_actions(
        self,
        caller: Caller,
        *,
        session_id: str | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> ActionList:
        """Return the actions of the caller's owner, or of one session, newest first."""
        caller.need("read")
        async with self._service.shares.use(caller.owner, "report"):
            page = await self._service.runtime.list_actions(
                owner=caller.owner, session_id=session_id, limit=limit, cursor=cursor
            )
        return ActionList.of(page, self._find_index())

    async def undo(self, caller: Caller, session_id: str, request: Undo) -> Continuation:
        """Start a turn that undoes the last action of a session, and waits for the turns before it.

        The turn says "undo that" in the language of the request, the session or the home. So the policy, the
        approvals and the journal are those of the sentence, and it drops an open approval question.

        If the request names the expected action, raise `LastActionChanged` if another one would be undone,
        and `SessionBusy` while another turn runs, because that turn may act.
        """
        caller.need("converse")
        session = await self._service.runtime.get_session(session_id, owner=caller.owner)
        if request.expected_key is not None:
            await self._check_expected(caller, session_id, request)
        preferred, index = session.preferences.get("language"), self._find_index()
        _, sentence = choose_undo_sentence(
            request.language,
            preferred if isinstance(preferred, str) else None,
            None if index is None else index.language,
        )
        sent = SendMessage(
            message=sentence,
            language=request.language,
            idempotency_key=request.idempotency_key,
            busy="enqueue" if request.expected_key is None else "reject",
        )
        return await self._service.reply(caller, session_id, sent)

    async def _check_expected(self, caller: Caller, session_id: str, request: Undo) -> None:
        runtime, key = self._service.runtime, request.idempotency_key
        if key is not None:
            turns = await runtime.list_turns(session_id, owner=caller.owner)
            if any(turn.request.idempotency_key == key for turn in turns):
                return  # The request was sent before, and may have undone the action.
        found = await runtime.find_action_to_undo(session_id, owner=caller.owner)
        if found != request.expected_key:
            other = "there is no action to undo" if found is None else f"an undo would reverse {found}"
            raise LastActionChanged(
                f"{request.expected_key} is not the last action of session {session_id}: {other}. "
                "Nothing was undone: list the actions again",
                session_id=session_id,
            )

    def _find_index(self) -> HomeIndex | None:
        home = self._service.runtime.home
        try:
            return None if home is None else home.index
        except HomeUnavailable:
            return None
