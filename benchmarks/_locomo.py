"""Reads LoCoMo, a public set of long conversations with questions. Its file is not part of Sash.

LoCoMo is from the paper "Evaluating Very Long-Term Conversational Memory of LLM Agents" (Maharana et al., ACL
2024). The file `data/locomo10.json` of its repository `snap-research/locomo` has the licence CC BY-NC 4.0.
"""

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from benchmarks._recall_data import AskedLater, Conversation, Said

# The category of questions that the conversation does not answer.
UNANSWERABLE = 5
# The file has the time of the first message of a session only.
BETWEEN_MESSAGES = timedelta(seconds=30)


def read_locomo(file: Path) -> list[Conversation]:
    """Return the conversations of a file. Captions of pictures are left out, because they were not said."""
    return [_read_conversation(sample) for sample in json.loads(file.read_text("utf-8"))]


def _read_conversation(sample: dict[str, Any]) -> Conversation:
    sessions: dict[str, Any] = sample["conversation"]
    numbers = sorted(int(name[8:]) for name in sessions if re.fullmatch(r"session_\d+", name))
    messages: list[Said] = []
    ids: dict[tuple[int, int], int] = {}
    for number in numbers:
        at = _read_time(sessions[f"session_{number}_date_time"])
        for n, turn in enumerate(sessions[f"session_{number}"]):
            said = Said(len(messages) + 1, at + n * BETWEEN_MESSAGES, turn["speaker"], turn.get("text") or "")
            messages.append(said)
            ids |= dict.fromkeys(_read_references(turn["dia_id"]), said.id)
    asked_at = messages[-1].at + timedelta(days=1)
    questions = tuple(_read_question(n, row, asked_at, ids) for n, row in enumerate(sample["qa"], 1))
    return Conversation(sample["sample_id"], tuple(messages), questions)


def _read_question(
    number: int, row: dict[str, Any], asked_at: datetime, ids: dict[tuple[int, int], int]
) -> AskedLater:
    """Return a question. It has no evidence if it cannot be answered."""
    written = " ".join(row.get("evidence", ())) if row["category"] != UNANSWERABLE else ""
    evidence = frozenset(ids[at] for at in _read_references(written) if at in ids)
    return AskedLater(str(number), asked_at, "", str(row["category"]), row["question"], evidence)


def _read_references(text: str) -> list[tuple[int, int]]:
    """Return the messages that a text names as the numbers of a session and of a message: "D8:6; D9:17"."""
    return [(int(session), int(message)) for session, message in re.findall(r"D(\d+):(\d+)", text)]


def _read_time(text: str) -> datetime:
    """Read a time such as "1:56 pm on 8 May, 2023"."""
    return datetime.strptime(text, "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
