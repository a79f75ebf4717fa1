"""Says the time that a question asked for: "yesterday evening", "since 12:00", "in December"."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from sash.intents.answers.writer import AnswerWriter
from sash.intents.past.state_periods import Period
from sash.intents.sentence.moments import Span
from sash.intents.sentence.time_words import TimeWords

_HOUR_S = 3600
_DAY = timedelta(days=1)
_SECOND = timedelta(seconds=1)
MAX_TIMES = 3
_NIGHTS = frozenset({"night", "last_night"})


class SpanWords:
    """The words for the times of one question, in the zone of `now`."""

    def __init__(self, writer: AnswerWriter, now: datetime, span: Span | None, time: TimeWords) -> None:
        self._writer = writer
        self._now = now
        self._span = span
        self._time = time

    def say_span(self) -> str:
        """Return the time that was asked for; empty without one."""
        writer, span, time = self._writer, self._span, self._time
        if span is None:
            return ""
        start = self._localize(span.start)
        if time.until is not None and time.hour is not None:
            clocks = {"start": self.say_moment(span.start), "end": writer.clock(self._localize(span.end))}
            if start.date() == self._now.date():
                clocks["start"] = writer.clock(start)
            return self._say("span_between", **clocks)
        if time.until is not None:
            days = {"start": self.say_date(span.start), "end": self.say_date(span.end - _SECOND)}
            return self._say("span_between", **days)
        if time.duration_s is not None and time.role != "ago":
            if time.duration_s == _HOUR_S:
                return self._say("span_last_hour")
            return self._say("span_last", duration=writer.duration(time.duration_s))
        if span.start == span.end:
            return writer.moment(start, self._now)
        if time.role in ("until", "before"):
            return self._say("span_until", time=self.say_moment(span.end))
        if time.role == "since" or time.hour is not None:
            return self._say("span_since", time=self._say_start(start))
        return self._say_day(start)

    def say_moment(self, moment: datetime) -> str:
        """Return a time with its day: "yesterday at 22:23"."""
        return self._writer.moment(self._localize(moment), self._now)

    def say_time(self, moment: datetime) -> str:
        """Return a time of the span: "at 8:04", or with its day if the span has several."""
        if self._span is not None and self._span.end - self._span.start > _DAY:
            return self.say_moment(moment)
        return self._say("at", times=self._writer.clock(self._localize(moment)))

    def say_times(self, periods: Sequence[Period]) -> str:
        """Return when some periods began: "at 8:04", or "3 times, last at 8:04"."""
        time = self.say_time(periods[-1].start)
        return time if len(periods) == 1 else self._say("times_last", count=len(periods), time=time)

    def say_clock(self, moment: datetime) -> str:
        """Return a time without a preposition, for "from 19:13 until 22:23"."""
        local = self._localize(moment)
        if self._span is not None and self._span.end - self._span.start <= _DAY:
            return self._writer.clock(local)
        is_today = local.date() == self._now.date()
        return self._writer.clock(local) if is_today else self._writer.moment(local, self._now)

    def say_begun(self, periods: tuple[Period, ...]) -> str:
        """Return the times at which some periods began: "at 7:31, 8:19 and 12:14"."""
        spans_days = self._span is None or self._span.end - self._span.start > _DAY
        if spans_days:
            return self._writer.join(self.say_moment(period.start) for period in periods)
        clocks = [self._writer.clock(self._localize(period.start)) for period in periods]
        return self._say("at", times=self._writer.join(dict.fromkeys(clocks)))

    def say_date(self, moment: datetime) -> str:
        return self._writer.day(self._localize(moment), self._now)

    def _say_day(self, start: datetime) -> str:
        writer, time = self._writer, self._time
        part = time.part
        # The night of a day begins on the day before.
        day = writer.day(start + timedelta(hours=8) if part in _NIGHTS else start, self._now)
        if time.day in (
            "this_week",
            "last_week",
            "this_month",
            "last_month",
            "this_year",
            "last_year",
            "weekend",
        ):
            return self._say(f"span_{time.day}")
        days = (start.date() - self._now.date()).days
        if part in _NIGHTS:
            return self._say("span_last_night") if days == -1 else self._say("span_night", day=day)
        if part is not None:
            near = {0: "today", -1: "yesterday"}.get(days)
            return self._say(f"span_{near}_{part}") if near else self._say(f"span_{part}", day=day)
        if self._span is not None and self._span.end - self._span.start > 2 * _DAY:
            return self._say("span_month", month=writer.month(start))
        return day

    def _say_start(self, start: datetime) -> str:
        if self._time.hour is not None:
            is_today = start.date() == self._now.date()
            return self._writer.clock(start) if is_today else self._writer.moment(start, self._now)
        days = (self._now.date() - start.date()).days
        return self._writer.day(start, self._now) if days <= 2 else self._writer.date(start)

    def _localize(self, moment: datetime) -> datetime:
        return moment.astimezone(self._now.tzinfo)

    def _say(self, key: str, **values: str | int) -> str:
        return self._writer.phrase(f"past.{key}", **values)
