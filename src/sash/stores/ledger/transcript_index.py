"""The word index of a transcript: of what was said, without the results of tools."""

from collections.abc import Sequence

from sash.stores.ledger.word_index import WordIndex
from sash.values.messages import MessageEntry


class TranscriptIndex:
    """Indexes the messages of a transcript. A search adds the new ones first."""

    def __init__(self) -> None:
        self._words = WordIndex()
        self._indexed_count = 0

    def update(self, transcript: Sequence[MessageEntry]) -> WordIndex:
        """Return the index with all messages of the transcript."""
        for position, message in enumerate(transcript[self._indexed_count :], self._indexed_count + 1):
            if message.role != "tool":
                self._words.add(position, message.text)
        self._indexed_count = len(transcript)
        return self._words

    def replace(self, position: int, old: MessageEntry, new: MessageEntry) -> None:
        """Replace a message, which is not the result of a tool."""
        if position <= self._indexed_count:
            self._words.replace(position, old.text, new.text)
