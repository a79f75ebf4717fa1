"""All stores find the same messages with the same words, whatever signs people write."""

import random
from datetime import timedelta

import pytest

from sash.memory.asked_words import AskedWord
from sash.memory.recall_question import read_question
from sash.memory.words import split_index_words
from sash.ports.store import Bundle, StoredMessage
from sash.stores.memory import MemoryStore
from sash.values.ids import new_id
from sash.values.messages import MessageEntry
from sash.values.sessions import Session
from tests.finding import word

WORDS = (
    *("boiler", "boilers", "Fußbodenheizung", "Wärmepumpe", "Wärmepumpenwartung", "café", "cafe\u0301"),
    *("naïve", "ÅNGSTRÖM", "İzmir", "Łódź", "CO\u2082", "m²", "½", "µg", "E-500", "light.kitchen_main"),
    *("厨房的灯", "台所の電気", "ห้องครัว", "세계", "где", "чайник", "ёлка", "שלום", "שָׁלוֹם", "مرحبا", "كِتَاب"),
    *(
        "a\u0335b",
        "x\u0305y",
        "q\u20dd",
        "o\u035co",
        "हिन्दी",
        "🙂",
        "🥰",
        "👩\u200d🚒",
        "❤\ufe0f",
        "\ue000",
        "₺5",
        "№7",
    ),
    *("AND", "OR", "NOT", "NEAR(", '"', "*", "boil*", "text:", "place:", "^x", "{", "}", "-", "+", "\\u0000"),
    *("x" * 41, "y" * 300, "plumer", "plumber", "Wartung", "fenster24", "can't", "l’eau", "\u2067rtl\u2069"),
)
BLANKS = (
    " ",
    " ",
    " ",
    " ",
    "",
    "",
    "\0",
    "\t",
    "\n",
    "\u00a0",
    "\u2003",
    "  ",
    "\x1f",
    "\u200b",
    ".",
    ", ",
    "🥲",
)
ENDS = (
    "",
    "",
    ".",
    "?",
    "？",
    "؟",
    "? ",
    "?" + 30 * " ",
    "?\0",
    "\0?",
    "?\u00a0\t\u2003\x1f",
    "??\n\n",
    "?\u200b",
    " " * 25,
)
FORMS = ("*", "", "x*")


def make_text(source):
    parts = [
        part for _ in range(source.randint(1, 9)) for part in (source.choice(WORDS), source.choice(BLANKS))
    ]
    return "".join(parts) + source.choice(ENDS)


def make_content(source):
    if source.random() < 0.8:
        return make_text(source)
    picture = {"type": "image_url", "image_url": {"url": "x"}}
    return [{"type": "text", "text": make_text(source)}, picture, {"type": "text", "text": make_text(source)}]


def make_bundle(source, clock):
    """Return a session of random messages, most of which have left the window."""
    session = Session(new_id(), "ann", clock.now(), clock.now())
    messages = []
    for n in range(1, 41):
        role = source.choice(("user", "user", "assistant", "assistant", "tool", "system"))
        fields = {"tool_call_id": "1"} if role == "tool" else {}
        name = source.choice((None, "Ida", "Älva 🙂"))
        at = clock.now() + timedelta(seconds=n)
        message = MessageEntry(role, make_content(source), name=name, timestamp=at, **fields)
        messages.append(StoredMessage(session.id, n, message, in_window=n > 30 or source.random() < 0.1))
    return Bundle(session, messages=tuple(messages))


def ask_all(source, bundle):
    """Return lists of words to look for, from the messages and with typing mistakes."""
    texts = [stored.message.text for stored in bundle.messages] + [*WORDS]
    said = sorted({part for text in texts for part in split_index_words(text)})
    questions = [read_question(text).words for text in source.sample(texts, 20)]
    for one in said:
        wrong = one.replace(source.choice(one), "", 1) or one
        questions += [[word(one)], [word(f"{one[:4]}*")], [AskedWord(wrong, (wrong,))]]
    return [*questions, [word("lamp", f"boil{form}") for form in FORMS]]


@pytest.mark.parametrize("indexed", [False, True])
@pytest.mark.parametrize("seed", range(6))
async def test_every_store_finds_the_same_messages(store, clock, indexed, seed):
    source = random.Random(seed)
    bundle = make_bundle(source, clock)
    reference = MemoryStore(clock=clock)
    await reference.open()
    for each in (store, reference):
        await each.import_session(bundle)
    if indexed:
        await store.search_words("ann", (), count=1)
    positions = range(len(bundle.messages) + 2)
    for with_window in (False, True):
        asked = ("ann", bundle.session.id, positions)
        expected = await reference.read_places(*asked, with_window=with_window)
        assert await store.read_places(*asked, with_window=with_window) == expected
    different = []
    for words in ask_all(source, bundle)[::7] if indexed else ():
        expected = await reference.search_words("ann", words, count=25)
        if (found := await store.search_words("ann", words, count=25)) != expected:
            different.append((words, {**expected.found}, {**found.found}))
    for words in ask_all(source, bundle):
        expected = await reference.find_words("ann", bundle.session.id, words)
        found = await store.find_words("ann", bundle.session.id, words)
        if found != expected:
            different.append((words, {**expected.found}, {**found.found}))
    assert different == []
