"""The word indexes of a transcript: one of all messages, and one without the results of tools."""

from collections.abc import Sequence

from sash.stores.ledger.word_index import WordIndex
from sash.values.messages import MessageEntry


class TranscriptIndex:
    """Finds messages of a transcript by prefixes of their words. A search adds the new messages first."""

    def __init__(self) -> None:
        self._all_words, self._spoken_words = WordIndex(), WordIndex()
        self._indexed_count = 0

    def find_newest(
        self, transcript: Sequence[MessageEntry], prefix: str, limit: int, skip_tools: bool
    ) -> set[int]:
        """Return positions of messages with a word that begins with `prefix`, as `WordIndex` does."""
        self._add_new(transcript)
        return (self._spoken_words if skip_tools else self._all_words).find_newest(prefix, limit)

    def replace(self, position: int, old: MessageEntry, new: MessageEntry) -> None:
        """Replace a message, which is not the result of a tool."""
        if position <= self._indexed_count:
            self._all_words.replace(position, old.text, new.text)
            self._spoken_words.replace(position, old.text, new.text)

    def _add_new(self, transcript: Sequence[MessageEntry]) -> None:
        for position, message in enumerate(transcript[self._indexed_count :], self._indexed_count + 1):
            self._all_words.add(position, message.text)
            if message.role != "tool":
                self._spoken_words.add(position, message.text)
        self._indexed_count = len(transcript)
