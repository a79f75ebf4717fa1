"""Finds the messages of the user in the whole transcript of a session."""

from collections.abc import Collection, Iterable
from datetime import datetime

from sash.engine.period_search import PeriodSearch
from sash.engine.recall import QuestionContext
from sash.memory.asked_words import list_words_in
from sash.memory.recall_ranking import MAX_CANDIDATES, Period
from sash.ports.intents import SaidMessage, SaidSearch
from sash.ports.store import Store, StoredMessage
from sash.values.messages import LOCAL_TAG

# The messages before the end of the transcript among which the newest ones of the user are.
MAX_POSITIONS = 1000
LAST_POSITION = 2**31 - 1


class SaidMessages:
    """Finds what the user said in one session, also in messages that were copied or have left the window.

    What was said before `since` is hidden.
    """

    def __init__(self, store: Store, owner: str, session_id: str, since: datetime | None) -> None:
        self._store = store
        self._owner = owner
        self._session_id = session_id
        self._since = since

    async def list_newest(self, limit: int) -> list[SaidMessage]:
        """Return the newest messages of the user, oldest of them first."""
        if (last := await self._find_last()) is None:
            return []
        positions = range(max(1, last.position - MAX_POSITIONS), last.position + 1)
        places = await self._store.read_places(self._owner, self._session_id, positions, with_window=True)
        asked = sorted(place.position for place in places if place.role == "user")
        return await self._read(asked[-limit:])

    async def list_between(self, start: datetime | None, end: datetime) -> list[SaidMessage]:
        """Return what the user said in a time, oldest first. Of a long time, only parts of it are read."""
        search = PeriodSearch(self._store, self._owner, self._session_id, with_window=True)
        starts = [each.timestamp() for each in (start, self._since) if each is not None]
        # The end belongs to the time: what was said last may be as old as the question.
        found = await search.find(Period(max(starts, default=0.0), end.timestamp() + 1))
        return await self._read(sorted(place.position for place in found if place.role == "user"))

    async def search(self, question: str, language: str, now: datetime) -> SaidSearch:
        """Find the messages of the user with words of a question, as the tool `recall` finds words."""
        asked = QuestionContext(now, language).read(question)
        hits = await self._store.search_words(
            self._owner, asked.words, session_id=self._session_id, count=MAX_CANDIDATES
        )
        found = {spot.position: bits for spot, bits in hits.found.items()}
        words: dict[SaidMessage, frozenset[int]] = {}
        for stored in await self._read_stored(found):
            # A question may also name the speaker.
            named = list_words_in(stored.message.name or "", asked.words)
            bits = found[stored.position]
            numbers = (n for n in range(len(asked.words)) if bits >> n & 1 or n in named)
            words[_make_said(stored)] = frozenset(numbers)
        needed = asked.telling or frozenset(range(len(asked.words)))
        exact = tuple(
            each for each, has in words.items() if needed <= has and 2 * len(has) >= len(asked.words)
        )
        similar = [
            each for each, has in words.items() if each not in exact and 2 * len(has) >= len(asked.words)
        ]
        similar.sort(key=lambda each: -sum(hits.weights[n] for n in words[each]))
        return SaidSearch(asked, exact, tuple(similar))

    async def find_last_answer(self) -> str:
        """Return the last answer in the transcript; empty without one."""
        last = await self._find_last()
        is_answer = last is not None and last.message.role == "assistant" and self._is_shown(last)
        return last.message.text if last is not None and is_answer else ""

    async def _find_last(self) -> StoredMessage | None:
        found = await self._store.messages(self._owner, self._session_id, before=LAST_POSITION, limit=1)
        return found[0] if found else None

    async def _read(self, positions: Collection[int]) -> list[SaidMessage]:
        return [_make_said(stored) for stored in await self._read_stored(positions)]

    async def _read_stored(self, positions: Iterable[int]) -> list[StoredMessage]:
        """Return the messages of the user at some positions, in order."""
        found = await self._store.messages_at(self._owner, self._session_id, [*positions])
        return [stored for stored in found if stored.message.role == "user" and self._is_shown(stored)]

    def _is_shown(self, stored: StoredMessage) -> bool:
        return self._since is None or stored.message.timestamp >= self._since


def _make_said(stored: StoredMessage) -> SaidMessage:
    message = stored.message
    return SaidMessage(
        message.id,
        message.text,
        message.timestamp,
        stored.continuation_id,
        not LOCAL_TAG.isdisjoint(message.tags),
    )
