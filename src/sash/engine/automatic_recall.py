"""Automatic recall: brings old messages into a prompt if a question clearly needs them."""

import asyncio
import math
from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

from sash.engine.recall import (
    Found,
    OldMessages,
    QuestionContext,
    RecalledMessage,
    find_partner,
    list_name_forms,
)
from sash.memory.asked_words import list_words_in
from sash.memory.proper_names import find_names
from sash.memory.recall_question import MAX_CHARS, RecallQuestion, find_question, is_asking
from sash.memory.recall_ranking import weigh_word
from sash.memory.words import split_words
from sash.values.steps import RecallReason

# Two messages with this part of their words in common are the same question.
MIN_SHARED_WORDS = 0.6
MAX_SAME_READ = 20
# The minimum evidence for a question, as a multiple of the weight of a word that only one message has. The
# home or the model can answer a question about the present, so it needs more. They know less about a person
# or a thing with a name: if the question names one, and the old place is about it, it needs less again.
NEEDED_PAST, NEEDED_OF_PERSON, NEEDED_OF_NAME, NEEDED = 0.6, 0.7, 1.4, 2.0
# In a short conversation, a word tells little.
MIN_EVIDENCE = 2.15
# The texts of a window with more characters are split into words in a thread.
MAX_CHARS_ON_LOOP = 50_000
# Messages that stand so close to each other count together.
NEAR = 2
# This number of the best places is read to see if they are about what a question names.
MAX_PLACES_READ = 10


class RecallResult(NamedTuple):
    """The result of automatic recall: the question, the old messages, best first, and the reason.

    `found_words` are the words of the question that stand at the best old place.
    """

    question: RecallQuestion
    messages: Sequence[RecalledMessage] = ()
    reason: RecallReason = "words"
    found_words: tuple[str, ...] = ()


async def recall_for(
    old: OldMessages,
    text: str,
    context: QuestionContext,
    window_texts: Sequence[str],
    count: Callable[[str], int],
    budget: int,
) -> RecallResult:
    """Return what a message asks for, the old messages that it clearly needs, best first, and why.

    Return no messages unless the message is a question whose words stand close together in an old place, and
    not in the window. A question that was asked twice before is a habit and gets none. A question about a
    time without a topic gets what was said then.
    """
    query = find_question(text, context.language)
    question = context.read(query)
    if not is_asking(query, context.language):
        return RecallResult(question)
    if question.is_about_time and question.looks_back:
        messages = await old.read_best(await old.find(query, context), count, budget)
        return RecallResult(question, messages, "time")
    if not question.telling:
        return RecallResult(question)
    # A question about the present does not need an old message that is only similar.
    found = await old.find(query, context, by_meaning=question.looks_back)
    question = found.question
    repeated = await _find_same_questions(old, found, query, context.language)
    if len(repeated) > 1:
        return RecallResult(question)
    partners = (find_partner(at, found.places) for at in repeated)
    left_out = {*repeated, *(at for at in partners if at is not None)}
    if left_out:
        # The question that was asked before would lend its high score to the messages around it.
        found = await old.rank_without(found, left_out)
    evidence = measure_evidence(found, left_out)
    if not is_enough(evidence, found) and not await _is_enough_of_name(old, evidence, found):
        return RecallResult(question)
    if sum(map(len, window_texts)) > MAX_CHARS_ON_LOOP:
        in_window = await asyncio.to_thread(measure_window, found, window_texts)
    else:
        in_window = measure_window(found, window_texts)
    if evidence.weight < in_window:
        return RecallResult(question)
    messages = await old.read_best(found, count, budget, left_out)
    is_by_words = _has_enough_words(evidence, found) or not found.has_clear_match
    reason: RecallReason = "words" if is_by_words else "meaning"
    return RecallResult(question, messages, reason, evidence.list_words(question))


class Evidence(NamedTuple):
    """How much the telling words of a question weigh at the best old places, and their positions.

    `words` are the numbers of the words at the newest of these places, as the bits of a number.
    """

    weight: float = 0.0
    positions: tuple[int, ...] = ()
    words: int = 0

    def list_words(self, question: RecallQuestion) -> tuple[str, ...]:
        """Return the words of a question that stand at the newest of these places."""
        return tuple(word.text for n, word in enumerate(question.words) if self.words >> n & 1)


def measure_evidence(found: Found, leave_out: Collection[int] = ()) -> Evidence:
    """Return what the telling words of a question weigh where most of them stand close together."""
    telling = sum(1 << n for n in found.question.telling)
    bits = {at: words & telling for at, words in found.hits.found.items() if at not in leave_out}
    ordered = sorted(bits)
    weights: dict[int, float] = {}
    words_near: dict[int, int] = {}
    for n, at in enumerate(ordered):
        words = bits[at]
        for other in (*ordered[max(0, n - 1) : n], *ordered[n + 1 : n + 2]):
            if abs(other - at) <= NEAR:
                words |= bits[other]
        weights[at], words_near[at] = found.hits.sum_weights(words), words
    most = max(weights.values(), default=0.0)
    best = tuple(at for at in ordered if weights[at] == most)
    return Evidence(most, best, words_near[best[-1]]) if most > 0 else Evidence()


def measure_window(found: Found, texts: Sequence[str]) -> float:
    """Return how much the telling words of a question weigh at the best place of the window.

    The texts are in normal form (`words.normalize`). Most have none of the words, and are not split.
    """
    question = found.question
    begins = tuple(form.rstrip("*") for n in question.telling for form in question.words[n].forms)
    has = [
        set(list_words_in(text, question.words)) & question.telling
        if any(begin in text for begin in begins)
        else frozenset[int]()
        for text in texts
    ]
    # A word that no old message has tells at least as much as one that a single message has.
    rarest = weigh_word(1, found.hits.message_count)
    weights, best = [weight or rarest for weight in found.hits.weights], 0.0
    for n in range(len(has)):
        words: set[int] = set().union(*has[max(0, n - 1) : n + 2])
        best = max(best, sum(weights[each] for each in words))
    return best


def is_enough(evidence: Evidence, found: Found) -> bool:
    """Return whether the words of a question clearly mean one old place."""
    return (found.question.looks_back and found.has_clear_match) or _has_enough_words(evidence, found)


def _has_enough_words(evidence: Evidence, found: Found) -> bool:
    return _reaches(NEEDED_PAST if found.question.looks_back else NEEDED, evidence, found)


async def _is_enough_of_name(old: OldMessages, evidence: Evidence, found: Found) -> bool:
    """Return whether a question names a speaker or a thing, and means an old place that is about it."""
    question = found.question
    needed = NEEDED_OF_PERSON if question.named else NEEDED_OF_NAME
    if question.is_request or not _reaches(needed, evidence, found):
        return False
    best = evidence.positions[-MAX_PLACES_READ:]
    partners = {find_partner(at, found.places) for at in best}
    read = await old.read([*best, *(at for at in partners if at is not None)])
    if question.named:
        forms = {form for name in question.named for form in list_name_forms(name)}
        return any(
            stored.message.name in question.named or not forms.isdisjoint(split_words(stored.message.text))
            for stored in read
        )
    texts = (stored.message.text[:MAX_CHARS] for stored in read)
    names = {word for text in texts for name in find_names(text) for word in split_words(name)}
    return not names.isdisjoint(evidence.list_words(question))


def _reaches(part: float, evidence: Evidence, found: Found) -> bool:
    """Return whether the evidence weighs as much as a part of a word that only one message has."""
    of_one_message = math.log(found.hits.message_count or 1)
    return 0 < evidence.weight >= max(part * of_one_message, min(MIN_EVIDENCE, of_one_message))


async def _find_same_questions(old: OldMessages, found: Found, text: str, language: str | None) -> list[int]:
    """Return the positions of old questions with most of the words of this one."""
    question = found.question
    asked = set(split_words(text[:MAX_CHARS]))
    likely = [
        at
        for at, words in found.hits.found.items()
        if found.places[at].role == "user" and words.bit_count() >= MIN_SHARED_WORDS * len(question.words)
    ]
    read = await old.read(sorted(likely)[-MAX_SAME_READ:])
    said = {
        stored.position: set(split_words(stored.message.text[:MAX_CHARS]))
        for stored in read
        if is_asking(stored.message.text, language)
    }
    return [
        at
        for at, words in said.items()
        if words and len(words & asked) >= MIN_SHARED_WORDS * len(words | asked)
    ]
