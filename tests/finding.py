"""Searches of a store, as the engine makes them."""

from datetime import UTC, datetime

from sash.engine.recall import QuestionContext
from sash.engine.transcript_search import TranscriptSearch
from sash.memory.asked_words import AskedWord
from sash.memory.words import normalize

NOW = datetime(2030, 1, 1, tzinfo=UTC)


def word(*forms):
    return AskedWord(normalize(forms[0].rstrip("*")), forms)


async def search(store, owner, query, *, session_id=None, limit=10):
    return await TranscriptSearch(store, owner, session_id).search(query, QuestionContext(NOW), limit)
