"""Automatic recall: brings old messages into a prompt if a question clearly needs them."""

import asyncio
import math
from collections.abc import Callable, Collection, Sequence

from sash.engine.recall import Found, OldMessages, QuestionContext, RecalledMessage, find_partner
from sash.memory.asked_words import list_words_in
from sash.memory.recall_question import MAX_CHARS, RecallQuestion, find_question, is_asking
from sash.memory.words import split_words

# Two messages with this part of their words in common are the same question.
SAME = 0.6
MAX_SAME_READ = 20
# How much the words of a question must tell, as parts of what a word of one single message tells. The home or
# the model can answer a question about the present, so it needs more. They know less of what a person likes.
NEEDED_PAST, NEEDED_OF_PERSON, NEEDED = 0.6, 1.4, 2.0
# In a short conversation, a word tells little.
MIN_EVIDENCE = 2.15
# The texts of a window with more characters are split into words in a thread.
MAX_CHARS_ON_LOOP = 50_000
# Messages that stand so close to each other count together.
NEAR = 2


async def recall_for(
    old: OldMessages,
    text: str,
    context: QuestionContext,
    window_texts: Sequence[str],
    count: Callable[[str], int],
    budget: int,
) -> tuple[RecallQuestion, list[RecalledMessage]]:
    """Return what a message asks for, and the old messages that it clearly needs, best first.

    It asks something, its words mean one old place and not the window, and it is no question of every day. Or
    it asks what was said at a time.
    """
    query = find_question(text, context.language)
    question = await context.read(query)
    if not is_asking(query, context.language):
        return question, []
    if question.is_about_time and question.looks_back:
        return question, await old.read_best(await old.find(question, query), count, budget)
    if not question.telling:
        return question, []
    # A question about the present does not need an old message that is only similar.
    found = await old.find(question, query, by_meaning=question.looks_back)
    repeated = await _find_same_questions(old, found, query, question, context.language)
    if len(repeated) > 1:
        return question, []
    partners = (find_partner(at, found.places) for at in repeated)
    left_out = {*repeated, *(at for at in partners if at is not None)}
    evidence = measure_evidence(found, question, left_out)
    if not is_enough(evidence, found, question):
        return question, []
    if sum(map(len, window_texts)) > MAX_CHARS_ON_LOOP:
        in_window = await asyncio.to_thread(measure_window, found, question, window_texts)
    else:
        in_window = measure_window(found, question, window_texts)
    if evidence < in_window:
        return question, []
    return question, await old.read_best(found, count, budget, left_out)


def measure_evidence(found: Found, question: RecallQuestion, leave_out: Collection[int] = ()) -> float:
    """Return how much the telling words of a question say at the best old place."""
    telling = sum(1 << n for n in question.telling)
    bits = {at: words & telling for at, words in found.hits.found.items() if at not in leave_out}
    ordered = sorted(at for at in bits if at in found.places)
    best = 0.0
    for n, at in enumerate(ordered):
        words = bits[at]
        for other in (*ordered[max(0, n - 1) : n], *ordered[n + 1 : n + 2]):
            if abs(other - at) <= NEAR:
                words |= bits[other]
        best = max(best, found.hits.sum_weights(words))
    return best


def measure_window(found: Found, question: RecallQuestion, texts: Sequence[str]) -> float:
    """Return how much the telling words of a question say at the best place of the window.

    The texts are in normal form (`words.normalize`). Most have none of the words, and are not split.
    """
    begins = tuple(form.rstrip("*") for n in question.telling for form in question.words[n].forms)
    has = [
        set(list_words_in(text, question.words)) & question.telling
        if any(begin in text for begin in begins)
        else frozenset[int]()
        for text in texts
    ]
    weights, best = found.hits.weights, 0.0
    for n in range(len(has)):
        words: set[int] = set().union(*has[max(0, n - 1) : n + 2])
        best = max(best, sum(weights[each] for each in words))
    return best


def is_enough(evidence: float, found: Found, question: RecallQuestion) -> bool:
    """Return whether the words of a question clearly mean one old place."""
    of_one_message = math.log(found.hits.message_count or 1)
    part = NEEDED_OF_PERSON if question.names_speaker else NEEDED
    if question.looks_back:
        part = NEEDED_PAST
    if question.looks_back and found.has_similar:
        return True
    return evidence > 0 and evidence >= max(part * of_one_message, min(MIN_EVIDENCE, of_one_message))


async def _find_same_questions(
    old: OldMessages, found: Found, text: str, question: RecallQuestion, language: str | None
) -> list[int]:
    """Return the positions of old questions with most of the words of this one."""
    asked = set(split_words(text[:MAX_CHARS]))
    likely = [
        at
        for at, words in found.hits.found.items()
        if at in found.places
        and found.places[at].role == "user"
        and words.bit_count() >= SAME * len(question.words)
    ]
    read = await old.read(sorted(likely)[-MAX_SAME_READ:])
    said = {
        stored.position: set(split_words(stored.message.text[:MAX_CHARS]))
        for stored in read
        if is_asking(stored.message.text, language)
    }
    return [at for at, words in said.items() if words and len(words & asked) >= SAME * len(words | asked)]
