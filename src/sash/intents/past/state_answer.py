"""Answers when, how long and how often something was in a state, and whether it was."""

from collections.abc import Callable
from datetime import timedelta

from sash.intents.past.asked_states import AskedState
from sash.intents.past.changes import Form, say_change, say_state
from sash.intents.past.question import PastQuestion, Target
from sash.intents.past.records import Records
from sash.intents.past.span_words import MAX_TIMES, SpanWords
from sash.intents.past.state_periods import Period, StateRecord
from sash.intents.situation import Situation
from sash.ports.home import Entity

# A shorter time in a state is an event: it has one time.
BRIEF = timedelta(minutes=5)
# A question for a moment also finds an event this close to it.
MOMENT_WINDOW = timedelta(minutes=10)
# A state that lasted for less than this part of the time is an exception.
RARE = 0.1
MAX_NAMES = 5
MAX_LISTED = 12
MINUTE = timedelta(minutes=1)
# A span that ends this short before now is not over.
NOW = timedelta(minutes=2)


class StateAnswerer:
    """Writes the answers to one question from the records of its targets."""

    def __init__(self, situation: Situation, question: PastQuestion, words: SpanWords) -> None:
        self._situation = situation
        self._writer = situation.writer
        self._question = question
        self._words = words

    def answer(self, records: Records) -> str:
        """Return the answer, with the beginning of the records if they do not reach back far enough."""
        answers: dict[str, Callable[[Records], str]] = {
            "was": self._say_whether,
            "when": self._say_when,
            "how_long": self._say_how_long,
            "how_often": self._say_how_often,
            "who": self._say_who,
            "until": self._say_until,
        }
        text = answers[self._question.ask](records)
        begins = [record.recorded_from for _, record in records]
        latest = max((begin for begin in begins if begin), default=None)
        if self._question.span is not None and latest is not None:
            text = f"{text} {self._say('records_since', day=self._words.say_date(latest))}"
        return text

    def _say_whether(self, records: Records) -> str:
        if self._question.is_moment:
            return self._say_whether_then(records)
        found = [(target, record) for target, record in records if record.periods]
        if self._question.is_denied:
            return (
                f"{self._say('no')} {self._say_last(*self._list_begun(found)[-1])}"
                if self._list_begun(found)
                else self._say("no" if found else "yes")
            )
        if self._question.wants_list:
            return self._say_which(found)
        if self._question.wants_all and len(records) > 1:
            return self._say_whether_all(records)
        if not found:
            return self._say_no(records)
        target, record = found[0]
        asked = self._get_asked(target)
        if len(found) > 1:
            names = self._writer.join(self._name(each.entity) for each, _ in found[:MAX_NAMES])
            return self._say("yes_some", names=names)
        if (len(records) > 1 or self._question.names_source) and record.begun:
            return self._say("yes_one", name=self._name(target.entity), times=self._say_begun(record))
        return self._say_periods(target.entity, asked, record)

    def _say_which(self, found: Records) -> str:
        """Say which things were in the state, or when the only one was."""
        if not found:
            return self._say("these_none")
        if len(found) > 1:
            return self._say(
                "these", names=self._writer.join(self._name(t.entity) for t, _ in found[:MAX_LISTED])
            )
        ((target, record),) = found
        values = {
            "name": self._name(target.entity),
            "state": self._say_state(target.entity, self._get_asked(target).name),
        }
        if len(record.periods) > 1:
            times = self._words.say_times(record.begun)
            return say_change(self._situation, target.entity, self._get_asked(target), times, "did")
        (period,) = record.periods
        start, end = self._words.say_clock(period.start), self._words.say_clock(period.end)
        if record.is_on_at_end and self._is_now(record):
            return self._say("ran_since", **values, start=start)
        return self._say("ran_from", **values, start=start, end=end)

    def _is_now(self, record: StateRecord) -> bool:
        return self._situation.now - record.end < NOW

    def _say_until(self, records: Records) -> str:
        """Say when the state ended for the last time, or that it has not."""
        found = [(record.periods[-1].end, target, record) for target, record in records if record.periods]
        if not found:
            return self._say_no(records)
        end, target, record = max(found, key=lambda each: each[0])
        if record.is_on_at_end and self._is_now(record):
            state = self._say_state(target.entity, self._get_asked(target).name)
            return self._say("until_now", name=self._name(target.entity), state=state)
        return self._say("until", moment=self._words.say_moment(end))

    def _list_begun(self, records: Records) -> list[tuple[Target, Period]]:
        """Return the changes into the state with their things, oldest first."""
        begun = [(target, period) for target, record in records for period in record.begun]
        return sorted(begun, key=lambda each: each[1].start)

    def _say_no(self, records: Records) -> str:
        span = self._words.say_span()
        if span:
            return self._say("no_span", span=span)
        return self._say_other_state(records)

    def _say_other_state(self, records: Records) -> str:
        target, record = records[0]
        if len(records) > 1 or record.other_state is None:
            return self._say("no")
        state = self._say_state(target.entity, record.other_state)
        return self._say("no_was", name=self._name(target.entity), state=state)

    def _say_whether_all(self, records: Records) -> str:
        """Answer whether all targets were in the state all the time."""
        others = [target.entity for target, record in records if record.share < 1 - RARE]
        if not others:
            return self._say("yes_all")
        return self._say("no_some", names=self._writer.names(others[:MAX_NAMES]))

    def _say_whether_then(self, records: Records) -> str:
        """Answer whether something was in a state at a moment. The records are of the time around it."""
        assert self._question.span is not None
        moment = self._question.span.start
        states = [
            (target, record, next((p for p in record.periods if p.start <= moment <= p.end), None))
            for target, record in records
        ]
        inside = [target.entity for target, _, period in states if period is not None]
        if self._question.wants_list and len(records) > 1:
            names = self._writer.names(inside[:MAX_LISTED])
            return self._say("these", names=names) if inside else self._say("these_none")
        if inside and len(records) > 1:
            return self._say("yes_some", names=self._writer.names(inside[:MAX_NAMES]))
        if inside:
            return self._say("yes")
        near = [period for _, record, _ in states for period in record.begun]
        if near:
            return self._say("yes_at", times=self._words.say_time(near[-1].start))
        return self._say_other_state(records)

    def _say_periods(self, entity: Entity, asked: AskedState, record: StateRecord) -> str:
        """Say yes with the times of one thing."""
        words, periods = self._words, record.periods
        if self._question.span is None and record.is_on_at_end:
            return self._say("yes_since", start=words.say_moment(periods[-1].start))
        if all(period.has_begun and period.length < BRIEF for period in periods):
            if len(periods) <= MAX_TIMES:
                return self._say("yes_at", times=words.say_begun(periods))
            return self._say("yes_often", count=len(periods), time=words.say_time(periods[-1].start))
        if record.share >= 1:
            return self._say("yes_all")
        if gap := self._find_only_gap(record):
            return self._say("yes_except", start=words.say_clock(gap.start), end=words.say_clock(gap.end))
        if len(periods) > 1:
            return self._say("yes_often", count=len(periods), time=words.say_time(periods[-1].start))
        (period,) = periods
        if not period.has_begun:
            return self._say("yes_until", end=words.say_clock(period.end))
        if record.is_on_at_end:
            return self._say("yes_since", start=words.say_clock(period.start))
        values = {"start": words.say_clock(period.start), "end": words.say_clock(period.end)}
        if record.share >= RARE or record.other_state is None:
            return self._say("yes_from", **values)
        return self._say("yes_only", **values, state=self._say_state(entity, record.other_state))

    def _find_only_gap(self, record: StateRecord) -> Period | None:
        """Return the time out of the state, if there is only one and it is short."""
        periods = record.periods
        if len(periods) != 2 or record.share < 1 - RARE:
            return None
        if periods[0].start > record.start or not record.is_on_at_end:
            return None
        return Period(periods[0].end, periods[1].start)

    def _say_when(self, records: Records) -> str:
        begun = self._list_begun(records)
        if self._question.back:
            earlier = begun[: -self._question.back]
            return self._say_last(*earlier[-1]) if earlier else self._say_never([])
        if not begun:
            return self._say_never(records)
        if self._question.span is None or self._question.wants_first:
            return self._say_last(*begun[0 if self._question.wants_first else -1])
        if len(begun) == 1:
            return self._say_last(*begun[0])
        periods = tuple(period for _, period in begun)
        if len(periods) > MAX_TIMES:
            return self._say(
                "often_last", count=len(periods), span=self._words.say_span(),
                time=self._words.say_time(periods[-1].start),
            )  # fmt: skip
        return self._say("times", times=self._words.say_begun(periods))

    def _say_last(self, target: Target, period: Period) -> str:
        """Say the time of one change: "The garage door was last opened today at 8:04."."""
        moment = self._words.say_moment(period.start)
        is_last = self._question.span is None and not self._question.wants_first
        form: Form = "last" if is_last and not self._question.back else "did"
        return say_change(self._situation, target.entity, self._get_asked(target), moment, form)

    def _say_never(self, records: Records) -> str:
        """Say that something did not change into the state in the time of the records."""
        if not records:
            return self._say("unrecorded")
        target, record = records[0]
        if record.periods and record.share >= 1:
            state = self._say_state(target.entity, self._get_asked(target).name)
            begin = record.recorded_from or record.start
            return self._say(
                "always", name=self._name(target.entity), state=state, day=self._words.say_date(begin)
            )
        if self._question.span is not None:
            return self._say("never", span=self._words.say_span())
        begin = min(record.recorded_from or record.start for _, record in records)
        return self._say("never_recorded", day=self._words.say_date(begin))

    def _say_how_long(self, records: Records) -> str:
        if self._question.span is None:
            return self._say_latest_length(records)
        texts = []
        span = self._words.say_span()
        for target, record in records[:MAX_TIMES]:
            name = self._name(target.entity)
            state = self._say_state(target.entity, self._get_asked(target).name)
            if not record.periods:
                texts.append(self._say("lasted_not", name=name, state=state, span=span))
                continue
            duration = self._writer.duration(record.total.total_seconds())
            texts.append(self._say("lasted", name=name, state=state, duration=duration, span=span))
        return " ".join(texts)

    def _say_latest_length(self, records: Records) -> str:
        """Say how long something has been in the state, or how long it was the last time."""
        known = [(record.periods[-1], target, record) for target, record in records if record.periods]
        if not known:
            return self._say_never(records)
        others = [(t, r) for t, r in records if not r.is_on_at_end and r.other_state is not None]
        if self._question.wants_all and others:
            state = self._say_state(others[0][0].entity, others[0][1].other_state or "")
            return self._writer.say("state.no", name=self._name(others[0][0].entity), state=state)
        period, target, record = max(known, key=lambda each: (each[0].end, each[0].start))
        values = {
            "name": self._name(target.entity),
            "state": self._say_state(target.entity, self._get_asked(target).name),
            "duration": self._writer.duration(period.length.total_seconds()),
        }
        if not record.is_on_at_end:
            return self._say("lasted_last", **values, moment=self._words.say_moment(period.end))
        if not period.has_begun:
            return self._say("lasts_longer", **values)
        if period.length < MINUTE:
            return self._say("lasts_moment", **values)
        return self._say("lasts", **values, moment=self._words.say_moment(period.start))

    def _say_who(self, records: Records) -> str:
        """Say which persons were in a state, such as at home."""
        if self._question.span is None:
            return self._say_when(records)
        names = [
            f"{self._name(target.entity)} {self._say_begun(record)}"
            if record.begun
            else self._name(target.entity)
            for target, record in records[:MAX_NAMES]
            if record.periods
        ]
        return self._say("times", times=self._writer.join(names)) if names else self._say("nobody")

    def _say_how_often(self, records: Records) -> str:
        span = self._words.say_span()
        found = [(target, record) for target, record in records if record.begun]
        if not found:
            return self._say("not_once", span=span)
        if len(found) == 1 and self._question.names_source:
            ((target, record),) = found
            times = self._words.say_times(record.begun)
            return say_change(self._situation, target.entity, self._get_asked(target), times, "did")
        if len(found) > 1:
            counts = [
                self._fill("count_of", name=self._name(t.entity), count=self._say_count(len(r.begun)))
                for t, r in found[:MAX_NAMES]
            ]
            return self._say("counts", counts=self._writer.join(counts), span=span)
        begun = found[0][1].begun
        if len(begun) == 1:
            return self._say("once", span=span, time=self._words.say_time(begun[0].start))
        if len(begun) <= MAX_TIMES:
            return self._say("often", count=len(begun), span=span, times=self._words.say_begun(begun))
        return self._say(
            "often_last", count=len(begun), span=span, time=self._words.say_time(begun[-1].start)
        )

    def _say_count(self, count: int) -> str:
        return self._fill("count_one" if count == 1 else "count_several", count=count)

    def _say_begun(self, record: StateRecord) -> str:
        begun = record.begun
        return self._words.say_begun(begun if len(begun) <= MAX_TIMES else begun[-1:])

    def _get_asked(self, target: Target) -> AskedState:
        assert target.asked is not None
        return target.asked

    def _say_state(self, entity: Entity, state: str) -> str:
        return say_state(self._situation, entity, state)

    def _name(self, entity: Entity) -> str:
        return self._writer.name(entity)

    def _say(self, key: str, **values: str | int) -> str:
        return self._writer.say(f"past.{key}", **values)

    def _fill(self, key: str, **values: str | int) -> str:
        return self._writer.phrase(f"past.{key}", **values)
