"""Makes the vectors of evicted messages, by which they are found by their meaning."""

from collections.abc import AsyncIterator, Sequence

from sash.engine.budget import Spending
from sash.engine.ceiling import find_limits
from sash.errors import ModelKeyRefused, ModelQuotaReached, ModelUnknown, ModelUnreachable
from sash.memory.packed_vectors import pack_vector
from sash.memory.recall_ranking import SPOKEN_ROLES
from sash.ports.embedder import Embedder
from sash.ports.store import Store, StoredMessage, Vector
from sash.values.sessions import OperatorLimits, Session

# So many vectors are kept for a session, of its newest evicted messages. docs/settings.md has what they cost.
MAX_VECTORS = 20_000
# So many messages are embedded by one request, and so many are read at a time.
BATCH, PAGE = 64, 500
MAX_CHARS = 4000
# These errors say nothing about the text.
PASSING_ERRORS = (ModelUnreachable, ModelQuotaReached, ModelKeyRefused, ModelUnknown, OSError)
# A text that every embedder accepts.
HARMLESS = "ok"


class MessageVectors:
    """Embeds evicted messages. The owner of a session pays, up to the limit of the day."""

    def __init__(
        self, store: Store, spending: Spending, operator: OperatorLimits, embedder: Embedder
    ) -> None:
        self._store = store
        self._spending = spending
        self._operator = operator
        self._embedder = embedder

    async def make(self, session: Session) -> None:
        """Embed the evicted messages that have no vector.

        If the model has changed, all are made anew. A server may also have a new model under the old name:
        then the vectors have another length.
        """
        stored = await self._store.vectors(session.owner, session.id, limit=PAGE)
        window = await self._store.window(session.owner, session.id)
        oldest = max(0, window.evicted_count - MAX_VECTORS)
        is_same_model = bool(stored) and stored[-1].model == self._embedder.name
        if not (is_same_model and await self._make_missing(session, stored, oldest)):
            await self._make_missing(session, (), oldest)

    async def _make_missing(self, session: Session, known: Sequence[Vector], oldest: int) -> bool:
        """Embed messages. `known` are the newest vectors. If there are none, the new ones replace all.

        Return False, and store nothing, if the new vectors have not the length of the known ones.
        """
        is_anew = not known
        known_lengths = {len(vector.data) for vector in known} - {0}
        async for messages in self._read_batches(session, known, oldest):
            vectors = await self._embed(session, messages)
            if not vectors:
                break
            lengths = {len(vector.data) for vector in vectors} - {0}
            if known_lengths and not lengths <= known_lengths:
                return False
            vectors = await self._drop_amended(session, messages, vectors)
            await self._store.add_vectors(
                session.owner, session.id, vectors, keep=MAX_VECTORS, replace_all=is_anew
            )
            is_anew = False
        return True

    async def _read_batches(
        self, session: Session, known: Sequence[Vector], oldest: int
    ) -> AsyncIterator[list[StoredMessage]]:
        """Yield the evicted messages without a vector that people and the agent said.

        Messages are not always evicted in their order, so a page before the newest vector is read again.
        """
        has_vector = {vector.position for vector in known}
        after = max(oldest, known[-1].position - PAGE if known else 0)
        page_length = PAGE
        while page_length == PAGE:
            page = await self._store.messages(session.owner, session.id, after=after, limit=PAGE)
            found = [m for m in page if _needs_vector(m) and m.position not in has_vector]
            for n in range(0, len(found), BATCH):
                yield found[n : n + BATCH]
            page_length = len(page)
            after = page[-1].position if page else after

    async def _drop_amended(
        self, session: Session, messages: Sequence[StoredMessage], vectors: Sequence[Vector]
    ) -> list[Vector]:
        """Return the vectors of those messages whose text has not changed while it was embedded."""
        positions = [stored.position for stored in messages]
        now = await self._store.messages_at(session.owner, session.id, positions)
        texts = {stored.position: stored.message.text for stored in now}
        same = {each.position for each in messages if texts.get(each.position) == each.message.text}
        return [vector for vector in vectors if vector.position in same]

    async def _embed(self, session: Session, messages: Sequence[StoredMessage]) -> list[Vector]:
        """Return the vectors of messages, or none if the owner's daily cost limit does not allow it.

        A message that the embedder refuses has an empty vector, so that it is not sent again.
        """
        texts = [stored.message.text[:MAX_CHARS] for stored in messages]
        usd = self._spending.price_embedding(self._embedder.name, texts)
        limit = find_limits(session, self._operator).budgets.max_cost_per_day_usd
        async with self._spending.reserve(session.owner, usd, limit) as is_allowed:
            if not is_allowed:
                return []
            made = await self._embed_texts(texts)
            if usd:
                await self._store.spend(session.owner, usd)
        return [
            Vector(stored.position, self._embedder.name, data)
            for stored, data in zip(messages, made, strict=True)
        ]

    async def _embed_texts(self, texts: Sequence[str]) -> list[bytes]:
        """Return the vectors of texts; an empty one for a text that the embedder refuses.

        Raise the embedder's error if it may pass, or if the embedder also refuses a harmless text.
        """
        try:
            made = await self._embedder.embed(texts)
            return [pack_vector(vector) for _, vector in zip(texts, made, strict=True)]
        except PASSING_ERRORS:
            raise
        except Exception:
            if len(texts) == 1:
                await self._embedder.embed([HARMLESS])
                return [b""]
        half = len(texts) // 2
        return [*await self._embed_texts(texts[:half]), *await self._embed_texts(texts[half:])]


def _needs_vector(stored: StoredMessage) -> bool:
    """Return True for evicted messages of people and of the agent, and False for results of tools."""
    message = stored.message
    return not stored.in_window and message.role in SPOKEN_ROLES and bool(message.text.strip())
