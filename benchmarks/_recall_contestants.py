"""The ways to find old messages that the benchmark of recall compares."""

import sqlite3
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from benchmarks._recall_before import rank_turns
from benchmarks._recall_data import AGENT, AskedLater, Conversation
from benchmarks._recall_embedder import add_vectors
from sash.engine.recall import OldMessages, QuestionContext
from sash.memory.recall_question import ANY_USER
from sash.memory.words import split_words
from sash.ports.embedder import Embedder
from sash.ports.store import Bundle, Store, StoredMessage
from sash.values.ids import new_id
from sash.values.messages import MessageEntry
from sash.values.sessions import Session

OWNER = "bench"

# Returns the ids of old messages, best first.
Rank = Callable[[AskedLater], Awaitable[Sequence[int]]]


@dataclass(frozen=True, slots=True)
class Contestant:
    name: str
    rank: Rank


def make_entries(conversation: Conversation) -> list[MessageEntry]:
    """Return the messages as a transcript has them."""
    return [
        MessageEntry(
            "assistant" if said.speaker == AGENT else "user",
            said.text,
            timestamp=said.at,
            name=None if said.speaker == AGENT else said.speaker,
        )
        for said in conversation.messages
    ]


async def import_conversation(store: Store, conversation: Conversation) -> str:
    """Write a conversation to a store, with all messages evicted, and return the id of its session."""
    first, last = conversation.messages[0].at, conversation.messages[-1].at
    session = Session(new_id(), OWNER, first, last)
    stored = [
        StoredMessage(session.id, position, message, in_window=False)
        for position, message in enumerate(make_entries(conversation), 1)
    ]
    bundle = Bundle(session, messages=tuple(stored), evicted_count=len(stored))
    return (await store.import_session(bundle)).id


def describe_asker(question: AskedLater, conversation: Conversation) -> QuestionContext:
    """Return when a question is asked, in which language, and who asks it."""
    return QuestionContext(question.at, conversation.language, asker=question.asker or ANY_USER)


async def make_old_messages(
    store: Store, conversation: Conversation, embedder: Embedder | None = None
) -> OldMessages:
    """Write a conversation to a store, with its vectors if there is an embedder."""
    session_id = await import_conversation(store, conversation)
    if embedder is not None:
        await add_vectors(store, OWNER, session_id, conversation, embedder)
    return OldMessages(store, OWNER, session_id, embedder)


async def make_sash(store: Store, conversation: Conversation, embedder: Embedder | None = None) -> Contestant:
    old = await make_old_messages(store, conversation, embedder)

    async def rank(question: AskedLater) -> list[int]:
        found = await old.find(question.question, describe_asker(question, conversation))
        return [position for position, _ in found.ranked]

    return Contestant("Sash" if embedder is None else "Sash with an embedder of words", rank)


def make_full_text(conversation: Conversation) -> Contestant:
    """Plain full text: SQLite's bm25 over all words of the question."""
    db = sqlite3.connect(":memory:")
    db.execute("CREATE VIRTUAL TABLE said USING fts5 (text, tokenize = 'unicode61 remove_diacritics 2')")
    rows = [(said.id, said.text) for said in conversation.messages]
    db.executemany("INSERT INTO said (rowid, text) VALUES (?, ?)", rows)

    async def rank(question: AskedLater) -> list[int]:
        words = " OR ".join(f'"{word}"' for word in dict.fromkeys(split_words(question.question)))
        found = db.execute("SELECT rowid FROM said WHERE said MATCH ? ORDER BY rank LIMIT 200", (words,))
        return [row for (row,) in found]

    return Contestant("plain FTS5 bm25", rank)


def make_before(conversation: Conversation) -> Contestant:
    """The first scoring of Sash: whole turns, and the 50 newest messages of each word."""
    entries = make_entries(conversation)

    async def rank(question: AskedLater) -> list[int]:
        return rank_turns(entries, question.question)

    return Contestant("Sash before", rank)


def make_langchain(conversation: Conversation) -> Contestant | None:
    """LangChain's retriever, or None if it is not installed."""
    try:
        from langchain_community.retrievers import BM25Retriever
    except ImportError:
        return None
    texts = [said.text for said in conversation.messages]
    ids = [{"id": said.id} for said in conversation.messages]
    retriever = BM25Retriever.from_texts(texts, metadatas=ids, k=100, preprocess_func=split_words)

    async def rank(question: AskedLater) -> list[int]:
        return [document.metadata["id"] for document in retriever.invoke(question.question)]

    return Contestant("LangChain BM25", rank)
