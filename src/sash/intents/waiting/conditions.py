"""Promises that wait for something to happen: "when the washing machine is done", "at sunset"."""

from dataclasses import replace

from sash.intents.question_detection import is_polite_request, is_question
from sash.intents.sentence.moments import find_moment
from sash.intents.sentence.time_words import NO_TIME, TimeWords
from sash.intents.situation import Reply, Situation
from sash.intents.waiting.registration import Registration, Task
from sash.intents.waiting.summaries import EDGE_KINDS, EDGE_SIGNS, LINKING_KINDS, cut_edges
from sash.intents.waiting.triggers import REFERENCES, Trigger, read_trigger
from sash.intents.words.phrases import Match, choose_matches

_OPENINGS = frozenset({"when", "if", "unless"})


class Conditions:
    """The conditions in one sentence about later."""

    def __init__(self, situation: Situation, registration: Registration) -> None:
        self._situation = situation
        self._sentence = situation.sentence
        self._writer = situation.writer
        self._registration = registration

    def reply(self) -> Reply | None:
        """Return the reply to a sentence with a condition; None for other sentences."""
        return self._reply_on_condition() or self._reply_at_sun()

    def _reply_on_condition(self) -> Reply | None:
        opening = next(iter(self._list_openings()), None)
        if opening is None or self._is_question(opening):
            return None
        text = self._situation.sentence.text
        if opening.value == "if" and is_polite_request(text) and is_question(text, self._writer.language):
            return None  # "Can you tell me if the light is on?" is answered now.
        before = self._sentence.cut(0, opening.start)
        tells = any(match.value == "tell" for match in self._find_later(0, opening.start))
        if opening.value == "if" and tells and self._registration.read_commands(0, opening.start):
            return None  # "Turn off the radio and tell me if the door is locked" has two parts.
        if opening.start > 0 and self._means_something(0, opening.start) and before:
            condition = opening.end, len(self._sentence.words)
            found = self._register_parts(opening, condition, (0, opening.start))
            missing = self._sentence.cut(opening.end, len(self._sentence.words)).strip(" .,;!")
            refused = Reply(self._writer.say("later.cannot_watch", missing=missing), is_guess=True)
            if found or self._registration.read_commands(0, opening.start):
                return found or refused
            unnamed = Reply(self._writer.say("later.watch_what"), is_guess=True)
            return unnamed if tells and self._names_nothing(opening.end) else None
        time = self._registration.read(0, opening.start).time
        for boundary in self._list_boundaries(opening.end):
            task = boundary, len(self._sentence.words)
            reply = self._register_parts(opening, (opening.end, boundary), task, time)
            if reply is not None:
                return reply
        return self._refuse_unknown(opening)

    def _reply_at_sun(self) -> Reply | None:
        """Promise something for sunset or sunrise: "turn on the garden lights at sunset"."""
        event = next((m for m in self._sentence.find("sun") if m.value in ("set", "rise")), None)
        if event is None or is_question(self._situation.sentence.text, self._writer.language):
            return None
        trigger = read_trigger(self._situation, event.start, event.end)
        empty = {p for m in self._sentence.matches if m.kind in EDGE_KINDS for p in m.places}
        # "At" belongs to the time.
        first = event.start - 1 if event.start - 1 in empty else event.start
        places = [n for n in range(len(self._sentence.words)) if not first <= n < event.end]
        summary = cut_edges(self._sentence, places, EDGE_KINDS)
        rest = self._situation.reader.read(" ".join(self._sentence.cut(n, n + 1) for n in places))
        clauses = self._registration.complete(self._situation.reader.read_clauses(rest))
        if trigger is None or not clauses or not all(each.is_command and each.words for each in clauses):
            return None
        return self._registration.register(Task(summary, tuple(clauses)), trigger)

    def remind(self, match: Match) -> Reply | None:
        """Promise a reminder for a state: "remind me of the laundry when Robby is done"."""
        total = len(self._sentence.words)
        opening = next((m for m in self._list_openings() if m.start >= match.end), None)
        if opening is None:
            return None
        what = self._registration.summarize(match.end, opening.start, NO_TIME, edges=LINKING_KINDS)
        end = total if what else self._find_end(opening)
        if end < total:
            what = self._registration.summarize(end, total, NO_TIME, edges=EDGE_KINDS)
        trigger = read_trigger(self._situation, opening.end, end)
        trigger = trigger or Trigger(missing=self._sentence.cut(opening.end, end).strip(" .!?"))
        say = self._writer.say("later.reminder", what=what or trigger.text)
        return self._registration.register(Task(what or trigger.text, say=say), trigger)

    def _find_end(self, opening: Match) -> int:
        """Return where a condition ends before what is to be told: "when I get home to call dad"."""
        total = len(self._sentence.words)
        links = {m.start for m in self._sentence.matches if m.kind in LINKING_KINDS and len(m.places) == 1}
        for place in sorted(link for link in links if opening.end + 1 < link < total - 1):
            trigger = read_trigger(self._situation, opening.end, place)
            if trigger is not None and not trigger.missing:
                return place
        return total

    def _list_openings(self) -> list[Match]:
        """Return the words that begin a condition, such as "when"."""
        matches = choose_matches(m for m in self._sentence.matches if m.kind == "condition")
        return [m for m in matches if m.value in _OPENINGS and not self._is_polite(m)]

    def _is_polite(self, opening: Match) -> bool:
        """Return whether a word for "if" belongs to a polite phrase: "if you can", "s'il te plaît"."""
        polite = (m for m in self._sentence.matches if m.kind in ("filler", "soft", "talk"))
        return any(set(opening.places) < set(m.places) for m in polite)

    def _refuse_unknown(self, opening: Match) -> Reply | None:
        """Refuse a condition that is not understood, if a command follows it: "when the sun sets, …"."""
        total = len(self._sentence.words)
        for boundary in self._list_boundaries(opening.end):
            clauses = self._registration.complete(
                self._situation.reader.read_clauses_between(self._sentence, boundary, total)
            )
            if (
                opening.start == 0
                and clauses
                and all(clause.is_command and clause.words for clause in clauses)
            ):
                missing = self._sentence.cut(opening.end, boundary).strip(" ,;")
                return Reply(self._writer.say("later.cannot_watch", missing=missing), is_guess=True)
        return None

    def _is_question(self, opening: Match) -> bool:
        """Return whether "when" asks for a time: "when was the door opened"."""
        asked = [m for m in self._sentence.matches if m.kind == "ask" and m.start == opening.start]
        return opening.start == 0 and (bool(asked) or "?" in self._sentence.words)

    def _list_boundaries(self, start: int) -> list[int]:
        """Return the places at which the command may begin: after a comma, or at a verb."""
        words = self._sentence.words
        commas = [n + 1 for n, word in enumerate(words) if word in EDGE_SIGNS and n > start]
        acts = [m for m in self._sentence.matches if m.kind in ("do", "later")]
        # "A casa" in "cuando llegue Anna a casa" is a part of "llegue … a casa".
        inner = {m for m in acts for one in acts if one.start < m.start and set(m.places) < set(one.places)}
        verbs = [m.start for m in acts if m.start > start and m not in inner]
        return [n for n in dict.fromkeys([*commas, *sorted(verbs)]) if n < len(words)]

    def _means_something(self, start: int, end: int) -> bool:
        clause = self._registration.read(start, end)
        return clause.is_command or any(m.value == "tell" for m in self._find_later(start, end))

    def _names_nothing(self, start: int) -> bool:
        """Return whether the words from `start` on only refer to something: "it is finished"."""
        clause = self._registration.read(start, len(self._sentence.words))
        refers = any(m.tag in REFERENCES and m.start >= start for m in self._sentence.matches)
        return refers and not clause.words

    def _register_parts(
        self,
        opening: Match,
        condition: tuple[int, int],
        task: tuple[int, int],
        time: TimeWords = NO_TIME,
    ) -> Reply | None:
        """Return the call for a task with its condition. `time` stands before it: "at ten, if …"."""
        trigger = read_trigger(
            self._situation,
            *condition,
            self._registration.complete,
            is_negated=opening.value == "unless",
            near=self._list_areas(task),
        )
        if trigger is None:
            return None
        trigger = self._add_time(trigger, time) or trigger
        tell = self._find_later(*task)
        summary = self._registration.summarize(*task, NO_TIME)
        if any(match.value == "tell" for match in tell):
            whole = self._sentence.cut(0, len(self._sentence.words))
            if self._names_nothing(condition[0]):
                entities = [self._situation.index.entities[key] for key in trigger.entity_ids]
                names = self._writer.names(entities)
                if names:
                    whole, trigger = f"{whole} ({names})", replace(trigger, text=f"{trigger.text} ({names})")
            say = self._writer.say("later.it_happened", what=trigger.text)
            return self._registration.register(Task(whole, say=say), trigger)
        places = [
            w for w in self._registration.read(*condition).words if self._situation.words.is_place(w.keys)
        ]
        read = self._situation.reader.read_clauses_between(self._sentence, *task)
        if places:  # "If it is cold in the living room, turn on the heating there".
            read = [
                replace(c, words=(*c.words, *places), refer=c.refer - {"there"}) if "there" in c.refer else c
                for c in read
            ]
        clauses = self._registration.complete(read)
        if not clauses or not all(clause.is_command for clause in clauses):
            return None
        own = next((clause.time for clause in clauses if not clause.time.is_empty), NO_TIME)
        if timed := self._add_time(trigger, own):
            trigger, summary = timed, self._registration.summarize(*task, own)
        if opening.value == "unless" and trigger.at is None and not trigger.missing:
            return self._registration.ask_for("later.when")  # It would be done at once, or never.
        return self._registration.register(Task(summary, tuple(clauses)), trigger)

    def _list_areas(self, part: tuple[int, int]) -> list[str]:
        """Return the areas of the things that a part of the sentence names."""
        entities = self._situation.index.entities
        ids = (key for word in self._registration.read(*part).words for key in word.entity_ids)
        areas = (entities[key].area_id for key in ids if key in entities)
        return [area for area in dict.fromkeys(areas) if area is not None]

    def _add_time(self, trigger: Trigger, time: TimeWords) -> Trigger | None:
        """Return a trigger for a time and its condition: "at ten, if nobody is home". None without a time."""
        at = None if trigger.when is None else find_moment(time, self._situation.now)
        if at is None or trigger.when is None:
            return None
        return replace(trigger, at=at, when=None, only_if=(trigger.when, *trigger.only_if))

    def _find_later(self, start: int, end: int) -> list[Match]:
        return [m for m in self._sentence.matches if m.kind == "later" and m.start >= start and m.end <= end]
