"""The ranking of old messages, on plain values."""

import math

import pytest

from sash.memory.asked_words import AskedWord, list_words_in
from sash.memory.recall_ranking import (
    MAX_BEST,
    MAX_CANDIDATES,
    Period,
    Place,
    WordHits,
    choose_best,
    choose_candidates,
    rank_messages,
    weigh_word,
)

HOUR, DAY = 3600.0, 86_400.0


def talk(count, *, start=1, at=0.0, speaker=None, length=40, questions=()):
    """Return the places of messages that follow each other by a minute."""
    return [
        Place(
            n,
            ("user", "assistant")[n % 2],
            speaker or ("user", "assistant")[n % 2],
            at + 60 * n,
            length,
            n in questions,
        )
        for n in range(start, start + count)
    ]


def rank(own, places, **options):
    return dict(rank_messages(own, places, **options))


def test_a_rare_word_tells_more_than_a_frequent_one_and_a_word_of_every_message_nothing():
    assert weigh_word(1, 100) == pytest.approx(math.log(99.5 / 1.5))
    assert weigh_word(1, 100) > weigh_word(10, 100) > weigh_word(60, 100) == pytest.approx(1e-6)
    assert weigh_word(0, 100) == 0


def test_each_message_has_the_bits_of_its_words():
    hits = choose_candidates([{1, 2}, {2}, set()], 10)
    assert hits.found == {1: 0b01, 2: 0b11}
    assert hits.sum_weights(0b11) == pytest.approx(hits.weights[0] + hits.weights[1])
    assert hits.sum_weights(0b100) == 0


def test_no_message_is_left_out_before_the_weights_are_known():
    many = set(range(1, 2 * MAX_CANDIDATES))
    hits = choose_candidates([many, {1, 5}], 10_000)
    assert len(hits.found) == MAX_CANDIDATES
    assert hits.found[1] == hits.found[5] == 0b11
    assert hits.weights[0] == pytest.approx(weigh_word(len(many), 10_000))


def test_the_forms_of_a_word_are_found_in_a_text():
    words = [AskedWord("boiler", ("boil*",)), AskedWord("car", ("car",)), AskedWord("buy", ("buy", "bought"))]
    assert list_words_in("The Boiler that I bought, and the cart", words) == [0, 2]
    assert list_words_in("", words) == []


def test_of_two_messages_with_the_same_words_the_short_one_is_better():
    places = {1: Place(1, "user", "user", 0, 300, False), 2: Place(2, "user", "user", 0, 30, False)}
    best = choose_best(WordHits((2.0,), {1: 1, 2: 1}, 9, places=places))
    assert best[2] == 1
    assert 0.5 < best[1] < 1


def test_only_the_best_messages_have_a_score_and_unknown_places_have_none():
    hits = WordHits((1.0,), dict.fromkeys(range(1, 150), 1), 1000)
    places = {n: Place(n, "user", "user", 0, 10, False) for n in range(1, 149)}
    best = choose_best(hits.at_places(places))
    assert len(best) == MAX_BEST
    assert 149 not in best
    assert choose_best(WordHits((), {}, 0)) == {}


def test_messages_get_a_part_of_the_scores_around_them():
    scores = rank({5: 1.0}, talk(9))
    best = 0.6 / 3
    assert scores == pytest.approx({5: 1 + best, 6: 0.6 + best, 7: 0.2 + best, 4: 0.3 + best, 3: 0.15 + best})
    assert [at for at, _ in rank_messages({5: 1.0}, talk(9))] == [5, 6, 4, 7, 3]


def test_the_answer_to_a_question_is_better_than_the_question():
    ranked = rank_messages({4: 1.0, 5: 0.6}, talk(8, questions={4}))
    assert ranked[0][0] == 5


def test_a_silence_and_a_gap_lend_nothing():
    places = [*talk(3), *talk(3, start=4, at=3 * HOUR)]
    scores = rank({3: 1.0}, places)
    assert set(scores) == {1, 2, 3}
    far = [*talk(1), *talk(1, start=20)]
    assert set(rank({1: 1.0}, far)) == {1}


def test_calls_of_tools_do_not_stand_between_a_question_and_its_answer():
    places = [Place(1, "user", "user", 0, 9, True), Place(5, "assistant", "assistant", 60, 9, False)]
    assert rank({1: 1.0}, places)[5] > 0.7


def test_what_was_said_by_a_speaker_who_is_asked_for_counts_more():
    own, places = (
        {2: 1.0, 6: 1.0},
        [Place(2, "user", "Ida", 0, 9, False), Place(6, "user", "Paul", 9 * HOUR, 9, False)],
    )
    assert rank_messages(own, places, "Ida")[0][0] == 2
    assert rank_messages(own, places, "Paul")[0][0] == 6
    unnamed = rank(own, places)
    assert unnamed[2] == unnamed[6]


def test_several_good_messages_lift_their_stretch():
    near, far = talk(6), talk(1, start=50, at=10 * HOUR)
    scores = rank({1: 0.9, 3: 0.9, 5: 0.9, 50: 1.0}, [*near, *far])
    assert max(scores, key=scores.__getitem__) in (1, 3, 5)


def test_the_time_that_is_asked_for_counts_and_what_follows_it_more_than_what_precedes_it():
    places = [Place(10 * n, "user", "user", n * 10 * DAY, 9, False) for n in range(1, 8)]
    scores = rank({place.position: 1.0 for place in places}, places, period=Period(39 * DAY, 41 * DAY))
    assert max(scores, key=scores.__getitem__) == 40
    assert scores[50] > scores[30] > 0
