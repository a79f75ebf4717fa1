"""The store contract. The transcript: the window, search, recall and vectors."""

from dataclasses import replace

import pytest

from sash.errors import (
    SessionNotFound,
)
from sash.memory.recall_question import read_question
from sash.memory.recall_ranking import MAX_CANDIDATES, Place
from sash.ports.store import Vector
from sash.ports.turns import TurnEnd
from sash.values.messages import MessageEntry
from sash.values.steps import (
    Failed,
)
from tests.contract.sample_values import completed, said, without
from tests.finding import search, word


async def find(store, session, *forms):
    """Return the positions of evicted messages with a word in one of some forms."""
    return sorted((await store.find_words(session.owner, session.id, [word(*forms)])).found)


async def test_the_window_is_cut_as_the_end_of_the_turn_says(store, start, begin):
    session = await start()
    first, second = said("one", "two", "three"), said("four", role="assistant")
    turn = (await begin(session)).turn
    await store.finish(turn.lease, completed(*first))
    turn = (await begin(session)).turn
    assert turn.window.messages == first
    end = completed(*second, cut=without(first[0], first[2], turn_starts=(second[0].id,)))
    await store.finish(turn.lease, end)
    window = await store.window("ann", session.id)
    assert window.messages == (first[1], second[0])
    assert (window.evicted_count, window.turn_starts) == (2, (second[0].id,))
    assert [gone.message_id for gone in await store.evicted("ann", session.id)] == [first[0].id, first[2].id]
    transcript = await store.messages("ann", session.id)
    assert [m.position for m in transcript] == [1, 2, 3, 4]
    assert [m.in_window for m in transcript] == [False, True, False, True]
    assert transcript[3].continuation_id == turn.continuation.id
    assert await store.messages("ann", session.id, after=1, limit=2) == transcript[1:3]


async def test_a_window_is_cut_several_times_at_any_position(store, start, begin, reopen):
    session = await start()
    messages = said(*map(str, range(12)))
    window = []
    for k, evicted in enumerate([(), (0, 3), (1,), (), (2, 4, 5, 9), (6, 7, 8, 11)]):
        new = messages[2 * k : 2 * k + 2]
        turn = (await begin(session)).turn
        gone = [messages[n] for n in evicted]
        await store.finish(turn.lease, completed(*new, cut=without(*gone) if gone else None))
        window = [m for m in (*window, *new) if m not in gone]
        assert list((await store.window("ann", session.id)).messages) == window
        there = [m.message for m in await store.messages("ann", session.id) if m.in_window]
        assert there == window
    store = await reopen()
    assert list((await store.window("ann", session.id)).messages) == window == [messages[10]]
    assert (await store.window("ann", session.id)).evicted_count == 11


async def test_messages_of_every_form_are_kept_exactly(store, start, begin):
    call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": '{"a":  1}'}}
    messages = (
        MessageEntry("user", "ünï\n\x00😀 ", token_count=3, tags={"input", "important"}, name="Ann"),
        MessageEntry("user", [{"type": "text", "text": "look"}, {"type": "image_url", "image_url": "x"}]),
        MessageEntry("assistant", "", tool_calls=[call]),
        MessageEntry("tool", "", tool_call_id="1"),
    )
    session = await start()
    turn = (await begin(session)).turn
    await store.finish(turn.lease, completed(*messages))
    assert (await store.window("ann", session.id)).messages == messages


async def test_the_turns_in_the_window_are_listed_in_their_order(store, start, begin, record, now_and_later):
    session = await start()
    made = [await record(session, f"q{n}", f"a{n}") for n in range(5)]
    turn = (await begin(session)).turn
    gone = [m for n in (0, 2) for m in made[n][1]] + [made[1][1][0]]
    await store.finish(turn.lease, completed(*said("last"), cut=without(*gone)))
    failed = (await begin(session)).turn
    await store.finish(failed.lease, TurnEnd("failed", (Failed("model_error", "no answer"),)))
    expected = [made[1][0], made[3][0], made[4][0], turn.continuation.id]
    async for opened in now_and_later():
        assert [t.id for t in await opened.window_turns("ann", session.id)] == expected
    assert (await opened.window_turns("ann", session.id))[0] == await opened.get_continuation(
        "ann", made[1][0]
    )


async def test_search_finds_words_in_the_owner_s_transcripts_only(store, start, begin):
    for owner in ("ann", "bob"):
        session = await start(owner)
        turn = (await begin(session)).turn
        end = completed(*said('Error 500 at "db.example.com"', "the kitchen light", "Größe ÄÖÜ"))
        await store.finish(turn.lease, replace(end, cut=without(end.messages[0])))
    found = await search(store, "bob", "error 500")
    assert [(m.session_id, m.in_window) for m in found] == [(session.id, False)]
    assert [m.message.text for m in await search(store, "bob", "KITCHEN", session_id=session.id)] == [
        "the kitchen light"
    ]
    assert [m.message.text for m in await search(store, "bob", "größe")] == ["Größe ÄÖÜ"]
    assert await search(store, "bob", "kitchen", session_id="other") == []
    assert await search(store, "carl", "kitchen") == []
    for odd in ("", " ", '"', "a AND", "NEAR(", "*", "x OR y -z", "col:x", "\0", '"\0"'):
        assert await search(store, "bob", odd) == []
    assert len(await search(store, "bob", "kitchen\0light")) == 1


async def test_search_leaves_tool_results_out(store, start, begin):
    turn = (await begin(await start("ann"))).turn
    [asked] = said("how is the boiler")
    [answered] = said("the boiler is cold", role="assistant")
    result = MessageEntry("tool", '{"boiler": "cold"}', token_count=9, tool_call_id="c")
    await store.finish(turn.lease, completed(asked, result, answered))
    assert {m.message.role for m in await search(store, "ann", "boiler")} == {"user", "assistant"}


async def test_search_finds_the_parts_of_a_name(store, start, begin):
    turn = (await begin(await start())).turn
    await store.finish(turn.lease, completed(*said("light.kitchen_main is on")))
    for words in ("kitchen", "main light", "kitchen_main", "light.kitchen_main"):
        assert len(await search(store, "ann", words)) == 1, words


@pytest.mark.parametrize("indexed", [False, True])
async def test_evicted_messages_are_found_by_the_forms_of_their_words(store, start, say, indexed):
    session, other = await start(), await start()
    first = await say(
        session, "The boiler leaks", "Boilers are OLD", "boil the kettle, E-500", 'a "quoted" word'
    )
    foreign = await say(other, "another boiler")
    await say(other, "x", evicted=foreign)
    await say(session, "a boiler in the window", evicted=first)
    await search(store, "ann", "an index catches up when somebody searches" if indexed else " ")
    assert await find(store, session, "boiler") == [1]
    assert await find(store, session, "boiler*") == [1, 2]
    assert await find(store, session, "boil*") == [1, 2, 3]
    assert await find(store, session, "old", "kettl*") == [2, 3]
    assert await find(store, session, "500") == [3]
    assert await find(store, session, "window") == []
    assert await find(store, session, "another") == []
    for odd in ('"', "quoted", "AND", "text : x", "boil* OR", "*", "", "é", "'", "\0", "a\0*"):
        await find(store, session, odd)
    with pytest.raises(SessionNotFound):
        await store.find_words("bob", session.id, [word("boil*")])


@pytest.mark.parametrize("indexed", [False, True])
async def test_each_message_has_the_words_that_it_contains_and_rare_words_weigh_more(
    store, start, say, indexed
):
    session = await start()
    rare = await say(session, "the heron stands in the pond")
    common = [m for n in range(60) for m in await say(session, f"the lamp number {n} burns")]
    both = await say(session, "a heron on the lamp")
    await say(session, "later", evicted=[*rare, *common, *both])
    await search(store, "ann", "index" if indexed else " ")
    hits = await store.find_words("ann", session.id, [word("lamp*"), word("heron"), word("unicorn*")])
    assert (hits.found[1], hits.found[2], hits.found[62]) == (0b10, 0b01, 0b11)
    assert len(hits.found) == hits.message_count == 62
    assert hits.weights[1] > 1 > hits.weights[0] > 0 == hits.weights[2]


async def test_of_many_messages_those_with_the_most_telling_words_are_returned(store, start, say):
    session = await start()
    texts = [f"lamp {n}" for n in range(MAX_CANDIDATES + 20)]
    messages = [*await say(session, "the heron and a lamp"), *await say(session, *texts)]
    await say(session, "later", evicted=messages)
    hits = await store.find_words("ann", session.id, [word("lamp"), word("heron")])
    assert len(hits.found) == MAX_CANDIDATES
    assert hits.found[1] == 0b11


async def test_results_of_tools_are_not_found(store, start, begin):
    session = await start()
    turn = (await begin(session)).turn
    calls = [{"id": "1", "type": "function", "function": {"name": "look", "arguments": "{}"}}]
    messages = (
        MessageEntry("user", "the boiler?"),
        MessageEntry("assistant", "", tool_calls=calls),
        MessageEntry("tool", "boiler: on", tool_call_id="1"),
        MessageEntry("assistant", "The boiler is on.", name="Sash"),
    )
    await store.finish(turn.lease, completed(*messages, cut=without(*messages)))
    assert await find(store, session, "boil*") == [1, 4]
    asked, answered = await store.read_places("ann", session.id, [9, 4, 3, 2, 1, 0])
    assert asked == Place(1, "user", "user", messages[0].timestamp.timestamp(), 11, is_question=True)
    assert answered == Place(4, "assistant", "Sash", messages[3].timestamp.timestamp(), 17, is_question=False)


async def test_the_places_of_a_window_are_not_read(store, start, say):
    session = await start()
    messages = await say(session, "one", "two", "three")
    await say(session, "later", evicted=[messages[0], messages[2]])
    found = await store.read_places("ann", session.id, range(1, 9))
    assert [place.position for place in found] == [1, 3]
    with pytest.raises(SessionNotFound):
        await store.read_places("bob", session.id, [1])


async def test_the_words_of_an_imported_transcript_are_found(store, start, say):
    session = await start()
    messages = await say(session, "the boiler leaks")
    await say(session, "later", evicted=messages)
    bundle = await store.export_session("ann", session.id)
    await store.delete_session("ann", session.id)
    assert await search(store, "ann", "boiler") == []
    await store.import_session(bundle)
    assert await find(store, session, "boil*") == [1]


@pytest.mark.parametrize("indexed", [False, True])
async def test_a_kept_message_of_an_older_turn_is_not_found(store, start, say, indexed):
    session = await start()
    messages = await say(session, "boiler one", "boiler two", "boiler three")
    await say(session, "later", evicted=[messages[0], messages[2]])
    await search(store, "ann", "index" if indexed else " ")
    assert await find(store, session, "boil*") == [1, 3]


async def test_images_are_not_searched_for_words(store, start, begin):
    session = await start()
    turn = (await begin(session)).turn
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,boiler"}}
    text = {"type": "text", "text": "a photo of the meter"}
    message = MessageEntry("user", [text, picture])
    await store.finish(turn.lease, completed(message))
    [found] = await search(store, "ann", "photo meter")
    assert found.message == message
    assert await search(store, "ann", "boiler") == []
    await store.erase("ann")
    assert await search(store, "ann", "photo") == []


async def test_vectors_are_bounded_and_deleted_with_the_session(store, start, reopen):
    session = await start()
    vectors = [Vector(n, "m", bytes([n, 255])) for n in range(1, 8)]
    await store.add_vectors("ann", session.id, vectors[:4], keep=5)
    await store.add_vectors("ann", session.id, [*vectors[4:], replace(vectors[3], model="n")], keep=5)
    kept = [replace(vectors[3], model="n") if v.position == 4 else v for v in vectors[2:]]
    assert await store.vectors("ann", session.id) == kept
    again = await reopen()
    assert await again.vectors("ann", session.id) == kept
    with pytest.raises(SessionNotFound):
        await again.vectors("bob", session.id)
    await again.delete_session("ann", session.id)
    with pytest.raises(SessionNotFound):
        await again.vectors("ann", session.id)


async def test_the_newest_vectors_and_those_of_one_embedder_are_read(store, start, now_and_later):
    session = await start()
    vectors = [Vector(n, "m" if n % 3 else "n", bytes([n])) for n in range(1, 10)]
    await store.add_vectors("ann", session.id, vectors, keep=9)
    async for opened in now_and_later():
        assert await opened.vectors("ann", session.id, limit=2) == vectors[7:]
        assert await opened.vectors("ann", session.id, model="n") == vectors[2::3]
        assert await opened.vectors("ann", session.id, model="m", limit=2) == vectors[6:8]
        assert await opened.vectors("ann", session.id, model="other") == []
        assert await opened.vectors("ann", session.id, limit=0) == []


async def test_new_vectors_can_replace_all_others(store, start, reopen):
    session, other = await start(), await start()
    old = [Vector(n, "m", b"old") for n in range(1, 8)]
    for each in (session, other):
        await store.add_vectors("ann", each.id, old, keep=9)
    new = [Vector(n, "n", b"new") for n in (2, 3)]
    await store.add_vectors("ann", session.id, new, keep=9, replace_all=True)
    again = await reopen()
    assert await again.vectors("ann", session.id) == new
    assert await again.vectors("ann", other.id) == old


@pytest.mark.parametrize("indexed", [False, True])
async def test_words_are_found_without_regard_to_accents_and_sharp_s(store, start, say, indexed):
    session = await start()
    messages = await say(session, "Die Fußbodenheizung im Café", "Hauptstraße 5", "light lights lighting")
    more = await say(session, "light again")
    await say(session, "later", evicted=[*messages, *more])
    await search(store, "ann", "index" if indexed else " ")
    for form, positions in (
        ("fußb*", [1]),
        ("cafe", [1]),
        ("café", [1]),
        ("hauptstraß*", [2]),
        ("lig*", [3, 4]),
        ("light", [3, 4]),
    ):
        assert await find(store, session, form) == positions, form


async def test_indexed_and_unindexed_messages_are_found_together(store, start, say):
    session = await start()
    old = await say(session, "boiler one", "boiler two")
    await say(session, "later", evicted=old)
    await search(store, "ann", "index")
    new = await say(session, "boiler three", "boiler four")
    await say(session, "later still", evicted=new)
    assert await find(store, session, "boil*") == [1, 2, 4, 5]


@pytest.mark.parametrize("indexed", [False, True])
async def test_words_of_other_scripts_are_found_on_every_store(store, start, say, indexed):
    session = await start()
    messages = await say(session, "где чайник", "Αθήνα το καλοκαίρι", "세계 여행")
    await say(session, "later", evicted=messages)
    await search(store, "ann", "index" if indexed else " ")
    for text, position in (("чайник", 1), ("Αθήνα", 2), ("세계", 3)):
        hits = await store.find_words("ann", session.id, read_question(text).words)
        assert [*hits.found] == [position], text


async def test_a_kept_message_does_not_change_the_weight_of_a_word(store, start, say):
    session = await start()
    messages = await say(session, "boiler one", "a lamp", "two", "three")
    await say(session, "later", evicted=messages[1:])
    hits = await store.find_words("ann", session.id, [word("boiler"), word("lamp")])
    assert hits.weights[0] == 0 < hits.weights[1]
    assert hits.message_count == 3


@pytest.mark.parametrize("indexed", [False, True])
async def test_compounds_and_typing_mistakes_are_found_if_no_message_has_the_word(store, start, say, indexed):
    session, other = await start(), await start()
    await say(other, "der Termin für die Fernwartung")
    old = await say(session, "Wärmepumpenwartung im März", "das Kellerfenster klemmt", "the plumber came")
    await say(session, "later", evicted=old)
    if indexed:
        await search(store, "ann", "index")
    words = [word("wart*"), word("fenster"), word("plumer"), word("plumb*"), word("unicorn*")]
    words[0] = replace(words[0], text="wartung")
    hits = await store.find_words("ann", session.id, words)
    assert hits.found == {1: 0b1, 2: 0b10, 3: 0b1100}
    assert hits.weights[:3] == (pytest.approx(0.7 * hits.weights[3]),) * 3, "a similar word tells less"


@pytest.mark.parametrize("indexed", [False, True])
async def test_text_without_blanks_is_found_by_pairs_of_letters(store, start, say, indexed):
    session = await start()
    old = await say(session, "厨房的灯坏了。", "ห้องครัว", "台所の電気をつけて", "lamp 灯")
    await say(session, "later", evicted=old)
    if indexed:
        await search(store, "ann", "index")
    for text, positions in (("厨房", [1]), ("灯", [1, 4]), ("電気", [3]), ("ครัว", [2]), ("房厨", [])):
        hits = await store.find_words("ann", session.id, read_question(text).words)
        assert sorted(hits.found) == positions, text
    assert [m.position for m in await search(store, "ann", "厨房")] == [1]


async def test_an_amended_answer_is_found_by_its_new_letters(store, start, record):
    session = await start()
    recorded, *_ = await record(session, "灯?", "厨房的灯坏了")
    assert len(await search(store, "ann", "坏了")) == 1
    await store.amend("ann", recorded, "厨房的灯好了", 9)
    assert await search(store, "ann", "坏了") == []
    assert len(await search(store, "ann", "好了")) == 1
    await store.amend("ann", recorded, "die Wärmepumpenwartung", 9)
    assert len(await search(store, "ann", "Wartung")) == 1


async def test_a_search_ranks_the_messages_of_all_sessions(store, start, say):
    first, second, third = await start(), await start(), await start()
    await start("bob")
    await say(first, "the boiler leaks", *(f"the lamp number {n} burns all night" for n in range(9)))
    await say(second, "the boiler man came for the leak")
    await say(third, "a boiler and a lamp for the hall")
    found = await search(store, "ann", "boiler leak")
    assert {(m.session_id, m.position) for m in found} == {(first.id, 1), (second.id, 1), (third.id, 1)}
    [best, *_] = await search(store, "ann", "boiler lamp hall")
    assert (best.session_id, best.position) == (third.id, 1)
    assert await search(store, "bob", "boiler") == []
    hits = await store.search_words("ann", [word("lamp")], count=3)
    assert (len(hits.found), hits.message_count) == (3, 12)
    assert (await store.search_words("ann", [word("lamp")], session_id="x", count=3)).found == {}


async def test_a_question_also_finds_the_answer_that_has_none_of_its_words(store, start, record):
    session = await start()
    await record(session, "what do I need for the bass", "a sock and a metre of string")
    await record(session, "good night", "sleep well")
    found = await search(store, "ann", "what did I need for the bass?", session_id=session.id)
    assert "a sock and a metre of string" in [m.message.text for m in found]
    assert [m.position for m in await search(store, "ann", "bass")] == [1]


async def test_the_places_of_a_window_are_read_if_they_are_wanted(store, start, say):
    session = await start()
    await say(session, "one", "two")
    found = await store.read_places("ann", session.id, [0, 1, 2, 3], with_window=True)
    assert [place.position for place in found] == [1, 2]


async def test_many_messages_without_an_index_are_found(store, start, say):
    session = await start()
    old = await say(session, *(f"the lamp number {n}" for n in range(300)), "a heron")
    await say(session, "later", evicted=old)
    assert await find(store, session, "heron") == [301]


async def test_one_message_has_a_bounded_number_of_words_that_others_are_similar_to(store, start, say):
    session = await start()
    letters = "abcdefghijklmnopqrstuvwxyz"
    many = " ".join(f"{a}{b}{c}word" for a in letters for b in letters for c in letters)
    old = await say(session, f"plumber {many} electrician")
    await say(session, "later", evicted=old)
    await search(store, "ann", "index")
    assert await find(store, session, "electrician") == [1]
    assert (await store.find_words("ann", session.id, [word("plumer")])).found == {1: 1}
    assert (await store.find_words("ann", session.id, [word("elektrician")])).found == {}


@pytest.mark.parametrize("indexed", [False, True])
async def test_the_words_of_an_amended_answer_stand_for_no_other_words(store, start, record, say, indexed):
    session = await start()
    wrong = " ".join(f"plumber{letter}" for letter in "abcdefghijklmn")
    recorded, first, _ = await record(session, "who comes?", f"{wrong} electrician")
    other = await say(session, "the plumbing is done", "electrician")
    await say(session, "later", evicted=[*first, *other])
    for text in (f"{wrong} gardener", "nobody"):
        if indexed:
            await search(store, "ann", "index")
        await store.amend("ann", recorded, text, 9)
    assert await find(store, session, "plumber") == [3]
    assert await find(store, session, "elektrician") == [4], "another message has the word"
    assert await find(store, session, "gardner") == []
    await search(store, "ann", "index")
    assert await find(store, session, "plumber") == [3]
