"""Answers questions about the past from history, statistics and logbook, or with an honest no."""

from sash.intents.past.answer import answer_past
from sash.intents.past.entry import answer_about_past, answer_price
from sash.intents.past.question import PastQuestion, read_past_question
from sash.intents.past.why import answer_why

__all__ = [
    "PastQuestion",
    "answer_about_past",
    "answer_past",
    "answer_price",
    "answer_why",
    "read_past_question",
]
