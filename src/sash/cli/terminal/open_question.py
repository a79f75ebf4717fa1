"""A question for an approval that a chat has shown and that waits for the next line."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from sash.app.schemas import ContinuationShown
from sash.engine.reply_verbs import APPROVAL_WAIT_S
from sash.intents.approval_words import parse_approval


@dataclass(frozen=True, slots=True)
class OpenQuestion:
    """A turn that waits for an approval, and the time at which its question was last shown."""

    turn: ContinuationShown
    shown_at: datetime

    def read_answer(self, line: str, now: datetime) -> bool | None:
        """Return True for a yes, False for a no, and None for another message or a late answer."""
        is_late = now - self.shown_at > timedelta(seconds=APPROVAL_WAIT_S)
        return None if is_late else parse_approval(line)
