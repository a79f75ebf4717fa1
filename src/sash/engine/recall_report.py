"""Reports which old messages automatic recall showed to the model in a turn, and why."""

from dataclasses import dataclass

from sash.memory.tokens import TokenCounter
from sash.ports.store import Store
from sash.values.bounds import Time
from sash.values.citations import shorten
from sash.values.steps import Recalled, RecallReason


@dataclass(frozen=True, slots=True)
class RecalledExcerpt:
    """A message that was recalled: its time, its speaker, its first words, and its tokens.

    `score` is None in journals of earlier versions. `tokens` are those of the whole message, also if the
    prompt got an excerpt of it.
    """

    message_id: str
    at: Time
    speaker: str
    text: str
    score: float | None
    tokens: int


@dataclass(frozen=True, slots=True)
class RecallReport:
    """The messages that were recalled for a turn, best first, and why.

    `found_words` are the words of the question that stand at the best old place. `tokens` is the size of
    the text that the prompt got.
    """

    continuation_id: str
    reason: RecallReason
    found_words: tuple[str, ...]
    tokens: int
    messages: tuple[RecalledExcerpt, ...]


async def read_recall(
    store: Store, counter: TokenCounter, owner: str, continuation_id: str
) -> RecallReport | None:
    """Return what was recalled for a turn; None if nothing was, or after the steps were dropped."""
    continuation, steps = await store.journal(owner, continuation_id)
    step = next((step.body for step in steps if isinstance(step.body, Recalled)), None)
    if step is None:
        return None
    found = await store.find_messages(owner, continuation.session_id, {*step.message_ids})
    messages = {stored.message.id: stored.message for stored in found}
    scores = dict(zip(step.message_ids, step.scores, strict=False))
    excerpts = tuple(
        RecalledExcerpt(
            id_,
            message.timestamp,
            message.name or message.role,
            shorten(message.text),
            scores.get(id_),
            counter.count_text(message.text),
        )
        for id_ in step.message_ids
        if (message := messages.get(id_)) is not None
    )
    tokens = counter.count_text(step.text)
    return RecallReport(continuation_id, step.reason, step.found_words, tokens, excerpts)
