"""The reply to one sentence, with what the turns before it were about."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from sash.home.undo import count_effects
from sash.intents.acting.call_order import arrange_calls
from sash.intents.acting.plan import Plan, choose_all, choose_from
from sash.intents.acting.planner import CALL_TOOL, Planner
from sash.intents.approval_words import is_doubtful, parse_approval
from sash.intents.asking.comparisons import compare_places
from sash.intents.asking.present import PresentAnswers
from sash.intents.clause_completion import ClauseCompletion, is_empty
from sash.intents.list_sentences import read_list_sentence
from sash.intents.missing_words import asks_of_world, say_impossible
from sash.intents.ordinals import choose_by_place
from sash.intents.other_parts import answer_other
from sash.intents.parts import split_requests
from sash.intents.past import answer_about_past, answer_price
from sash.intents.sentence.clause import Clause, Word
from sash.intents.sentence.remarks import is_taken_back, is_thanks
from sash.intents.shopping import changed_items
from sash.intents.situation import Reply, Situation
from sash.intents.statements import acknowledge, forget_last, report_forgotten
from sash.intents.targets import list_matching
from sash.intents.topic import Topic, read_topic
from sash.intents.turn_report import explain_problem, join_answers, report_commands, report_parts
from sash.intents.undoing import undo
from sash.intents.waiting.open_question import join_with_question
from sash.intents.waiting.promises import Promises
from sash.values.continuations import Continuation

# An offer that was not answered within this time is dropped.
OFFER_S = 60
# A sentence with more parts than this is no list of requests.
MAX_PARTS = 12
# A fact that was told in one of the last turns may be meant by "forget that".
MAX_TOLD = 3
# The words of a chore that is named as a whole: "run me a bath". A shorter one may be about the home.
MIN_CHORE_WORDS = 3
# A thing in one of these states can be stopped.
_BEFORE_VERB = frozenset({"filler", "soft", "talk", "ask"})
IN_USE = frozenset({"on", "playing", "cleaning", "opening", "closing", "mowing"})
# References to what was said last.
REFERS_TO_ANSWER = frozenset({"about", "again", "correct", "ones", "other", "same", "that_time", "too"})


class ConversationTurn:
    """One sentence in its conversation, with what the turns before it were about."""

    def __init__(
        self,
        situation: Situation,
        topics: Sequence[Topic],
        turns: Sequence[Continuation],
        chosen_ids: Sequence[str] = (),
    ) -> None:
        self._situation = situation
        self._topics = topics
        self._turns = turns
        self._completion = ClauseCompletion(situation, topics, turns)
        self._planner = Planner(situation, chosen_ids)
        self._present = PresentAnswers(situation)
        self._promises = Promises(situation, self._planner, self._completion.complete)

    async def reply(self) -> Reply | None:
        """Return the reply to the sentence, with the given topics for what it leaves out."""
        situation = self._situation
        undone = None if self._puts_back_items() else self._undo()
        if reply := undone or self._answer_unmeant():
            return reply
        if (promised := await self._promises.reply(self._find_recent_topic())) is not None:
            return promised
        if (promised := await self._answer_open_question() or await self._forget_fact()) is not None:
            return promised
        clauses = situation.reader.read_clauses(situation.sentence)
        offer = self._find_offer()
        if offer is not None and (reply := await self._answer_offer(offer, clauses)) is not None:
            return reply
        if (combined := await self._reply_to_parts()) is not None:
            return combined
        if (stopped := self._stop(clauses) or self._refuse_chore()) is not None:
            return stopped
        compared = compare_places(situation, self._topics) or answer_price(situation, self._find_last_topic())
        if compared is not None:
            return compared
        other = await answer_other(situation)
        if other is not None and (not other.is_guess or situation.sentence.covers("talk") == "blame"):
            return other
        reply = await self._reply_to_clauses(clauses)
        if reply is not None and situation.utterance.has_model and self._is_uncertain(reply, clauses):
            reply = replace(reply, is_guess=True)
        return reply if reply is not None and self._is_meant(reply) else other or self._refuse(reply)

    def _undo(self) -> Reply | None:
        return undo(self._situation, self._find_last_topic(), self._count_effects())

    def _puts_back_items(self) -> bool:
        """Return whether "put it back on" or "undo that" is about an item of the list of the last turn."""
        last, matches = self._find_last_topic(), self._situation.sentence.matches
        is_of_list = last is not None and any(key.startswith("todo.") for key in last.entity_ids)
        has_changed = is_of_list and bool(self._turns and changed_items(self._turns[-1]))
        return is_of_list and (has_changed or any(match.tag == "item.add" for match in matches))

    def _is_meant(self, reply: Reply) -> bool:
        """Return whether a reply is certain, and offers nothing to a remark: "I don't like coffee"."""
        is_offer = reply.topic is not None and reply.topic["kind"] == "offer"
        return not reply.is_guess and not (is_offer and acknowledge(self._situation))

    def _answer_unmeant(self) -> Reply | None:
        """Return the reply to a sentence with an act that is not to be done; None for other sentences."""
        sentence, writer = self._situation.sentence, self._situation.writer
        if is_thanks(sentence):
            return Reply(writer.say("talk.thanks"))
        if is_taken_back(sentence):
            return Reply(writer.say("command.denied"))
        if not self._turns and sentence.covers("refer", more=("filler", "talk")) == "again":
            return Reply(writer.say("self.nothing_to_repeat"), is_guess=True)
        if self._is_only_condition():
            return Reply(writer.say("ask.then"))
        return None

    def _is_only_condition(self) -> bool:
        """Return whether a sentence says when something is to be done, but not what: "if it is cold"."""
        sentence = self._situation.sentence
        around = {p for m in sentence.matches if m.kind in ("filler", "soft", "join") for p in m.places}
        asked = {m.start for m in sentence.matches if m.kind == "ask"}
        begins = any(
            m.start not in asked
            and m.tag in ("condition.if", "condition.when")
            and around.issuperset(range(m.start))
            for m in sentence.matches
        )
        if not begins or "?" in sentence.words or sentence.find("later"):
            return False
        clauses = self._situation.reader.read_clauses(sentence)
        has_thing = any(not word.has("property") for clause in clauses for word in clause.words)
        return len(clauses) == 1 and not has_thing and not clauses[0].is_fragment

    def _refuse(self, guess: Reply | None) -> Reply | None:
        """Return an honest no to what no home can do or know, or else the guess."""
        if reply := self._promises.refuse_to_cancel() or acknowledge(self._situation):
            return reply
        if self._asks_impossible():
            return Reply(say_impossible(self._situation), is_guess=True)
        if known := self._present.tell_known(guess):
            return known
        is_vague = guess is None or guess.text == self._situation.writer.say("ask.what")
        if is_vague and asks_of_world(self._situation):
            return Reply(self._situation.writer.say("cannot.know"), is_guess=True)
        return guess

    async def _answer_open_question(self) -> Reply | None:
        """Return the promise that lacked its time: "remind me to call mum", and then "at six"."""
        joined = join_with_question(self._situation, self._turns)
        return await self._make_part(joined).reply_promise() if joined else None

    async def _forget_fact(self) -> Reply | None:
        """Return the call that forgets the fact that was told last, or the report of it."""
        if self._situation.utterance.results:
            return report_forgotten(self._situation)
        if self._promises.refuse_to_cancel() is None:
            return None
        return await forget_last(self._situation, [turn.request.message for turn in self._turns[-MAX_TOLD:]])

    def is_talk(self) -> bool:
        """Return whether the sentence is nothing but small talk."""
        return self._situation.sentence.covers("talk", more=("filler", "soft", "talk")) is not None

    def _refuse_chore(self) -> Reply | None:
        """Return an honest no to a chore that no home can do: "run me a bath"."""
        if not self._asks_impossible(min_words=MIN_CHORE_WORDS):
            return None
        return Reply(say_impossible(self._situation), is_guess=self._situation.utterance.has_model)

    def _asks_impossible(self, min_words: int = 1) -> bool:
        """Return whether a sentence begins with an act that no home can do: "order a pizza".

        `min_words` is the number of words of the act.
        """
        sentence, articles = self._situation.sentence, self._situation.reader.lexicon.articles
        around = {p for m in sentence.matches if m.kind in _BEFORE_VERB for p in m.places}
        acts = (m for m in sentence.matches if m.kind == "cannot" and len(m.places) >= min_words)
        acts = (m for m in acts if m.end - m.start == len(m.places) or min_words == 1)
        acts = (m for m in acts if around.issuperset(range(m.start)))
        # "Is my phone charged?" does not ask for a call.
        return any(m.start == 0 or sentence.words[m.start - 1] not in articles for m in acts)

    def _is_uncertain(self, reply: Reply, clauses: list[Clause]) -> bool:
        """Return whether a part of a sentence is not understood, or refers to what a model has said."""
        follows_model = bool(self._turns and self._turns[-1].has_model_call)
        if follows_model and any(_refers_to_answer(clause) for clause in clauses):
            return True
        is_planned = reply.calls or self._situation.utterance.results
        if not self._topics and not is_planned and any(c.refer and not c.words for c in clauses):
            return True
        if any(
            clause.is_question and clause.amount.value is not None and clause.amount.unit is None
            for clause in clauses
        ):
            return True
        words = [word for clause in clauses for word in (*clause.words, *clause.excluded)]
        return any(
            not any("." in key or ":" in key for key in word.keys)
            and not self._situation.words.find(word.keys)
            and not word.entity_ids
            for word in words
        )

    def _stop(self, clauses: list[Clause]) -> Reply | None:
        """Return the calls for a plain "stop" while the thing of the last turn is in use."""
        last = self._find_last_topic()
        if len(clauses) != 1 or clauses[0].do != ("stop",) or clauses[0].words or last is None:
            return None
        states = {self._situation.index.get_state(key) for key in last.entity_ids}
        is_in_use = last.kind == "command" and states & IN_USE
        return (
            self._act(self._completion.complete(clauses))
            if is_in_use or self._situation.utterance.results
            else None
        )

    def _count_effects(self) -> int:
        """Return the number of actions with which the last turn changed something."""
        response = self._turns[-1].response if self._turns else None
        return count_effects(response.actions, self._situation.index) if response else 0

    def _find_last_topic(self) -> Topic | None:
        """Return what the last turn was about; None if it has no topic."""
        response = self._turns[-1].response if self._turns else None
        return read_topic(response.topic) if response else None

    def _find_recent_topic(self) -> Topic | None:
        """Return what the newest turn with a topic was about, without those that were not understood."""
        return next((t for t in self._topics if t.kind == "waiting" or t.choices or t.entity_ids), None)

    def _find_offer(self) -> Topic | None:
        """Return what the last turn asked, if it is not too long ago."""
        if not self._turns or not self._topics:
            return None
        last = self._turns[-1]
        topic = read_topic(last.response.topic) if last.response else None
        age = self._situation.now - last.updated_at
        is_fresh = age <= timedelta(seconds=OFFER_S)
        return topic if topic is not None and topic.kind == "offer" and is_fresh else None

    async def _answer_offer(self, offer: Topic, clauses: list[Clause]) -> Reply | None:
        """Return the reply to "yes", "no", or the name of one of the things that were offered."""
        situation, sentence = self._situation, self._situation.sentence
        entities = situation.index.entities
        answers = {True: "yes", False: "no", None: None}
        text = situation.utterance.text
        talk = sentence.covers("talk") or answers[parse_approval(text)]
        if talk == "yes" and is_doubtful(text):
            talk = None
        if talk == "yes" and len(offer.choices) == 1:
            if promised := await self._promise_chosen(offer.choices):
                return promised
            chosen = choose_from(offer.clauses[-1], offer.choices, entities)
            return self._act([*offer.clauses[:-1], chosen])
        if talk == "yes" and all(clause.time.is_empty for clause in offer.clauses):
            things = [entities[key] for key in offer.choices if key in entities]
            which = situation.writer.say("ask.which", names=situation.writer.names(things, "or"))
            return Reply(which, topic=offer.to_json())
        if talk in ("no", "never_mind"):
            return Reply(situation.writer.say("command.denied"))
        if len(clauses) == 1 and _means_all(clauses[0]) and offer.clauses:
            return self._act([*offer.clauses[:-1], choose_all(offer.clauses[-1], offer.choices, entities)])
        clauses = [choose_by_place(each, [offer], situation.index) for each in clauses if not is_empty(each)]
        if len(clauses) != 1 or not clauses[0].is_fragment or not clauses[0].words:
            return None
        wanted = choose_from(offer.clauses[-1], offer.choices, entities)
        narrowed = self._narrow(offer, clauses[0])
        if len(narrowed) == 1:
            if promised := await self._promise_chosen(narrowed):
                return promised
            return self._act([*offer.clauses[:-1], choose_from(wanted, narrowed, entities)])
        return None

    async def _promise_chosen(self, chosen_ids: Sequence[str]) -> Reply | None:
        """Return the promise of the last sentence, now that it is known which things it meant."""
        if self._situation.utterance.results:
            return None
        promised = await self._make_part(self._turns[-1].request.message, chosen_ids).reply_promise()
        return promised if promised is not None and promised.calls else None

    async def reply_promise(self) -> Reply | None:
        """Return the reply to a sentence about later; None for other sentences."""
        if promised := await self._promises.reply(None):
            return promised
        clauses = self._completion.complete(self._situation.reader.read_clauses(self._situation.sentence))
        return self._promises.promise([clause for clause in clauses if self._completion.is_command(clause)])

    def _narrow(self, offer: Topic, clause: Clause) -> list[str]:
        found = list_matching(clause.words, lambda entity: entity.id in offer.choices, self._situation.words)
        return [entity.id for entity in found]

    async def _reply_to_clauses(self, clauses: list[Clause]) -> Reply | None:
        if len(clauses) == 1 and clauses[0].has_make and clauses[0].amount.is_empty:
            clauses = [await self._completion.fill_liked(clauses[0])]
        completed = self._completion.complete(clauses)
        if not completed:
            return None
        commands = [clause for clause in completed if self._completion.is_command(clause)]
        if commands and len(commands) == len(completed):
            # "Turn on the radio, not too loud": what is not wanted is left out.
            wanted = [clause for clause in commands if not clause.is_negated]
            if not wanted:
                # "Not that" after something was done.
                is_late = bool(self._count_effects()) and not any(clause.words for clause in commands)
                key = "talk.blame_undo" if is_late else "command.denied"
                return Reply(self._situation.writer.say(key), is_guess=True)
            commands = completed = wanted
        if self._situation.utterance.results:
            return report_commands(self._situation, self._present, completed, commands)
        if commands and len(commands) == len(completed):
            return self._promises.promise(commands) or self._act(commands)
        if commands:
            questions = [clause for clause in completed if clause not in commands]
            return self._promises.promise(commands) or self._act(commands, questions)
        return await self._answer(completed)

    async def _reply_to_parts(self) -> Reply | None:
        """Reply to each part of a sentence such as "turn on the light and add milk to the list".

        Return None if its parts belong together, or are all about devices.
        """
        situation = self._situation
        texts = split_requests(situation.sentence, situation.reader)
        if len(texts) > MAX_PARTS:
            return None
        parts = [self._make_part(text) for text in texts]
        # "Yes", "thanks" or "right?" beside a request needs no answer of its own.
        parts = [part for part in parts if not part.is_talk()]
        if len(parts) < 2:
            return None
        others = [await part.reply_otherwise() for part in parts]
        if not any(reply is not None and not reply.is_guess for reply in others):
            return None
        replies = [
            other if other is not None and not other.is_guess else await part.reply_about_devices()
            for part, other in zip(parts, others, strict=True)
        ]
        known = [reply for reply in replies if reply is not None and not reply.is_guess]
        if len(known) < len(replies):
            return None
        said = zip(parts, known, strict=True)
        answers = dict.fromkeys(
            reply.text for part, reply in said if not reply.calls and not part.has_changed_list(situation)
        )
        if situation.utterance.results:
            return Reply(" ".join(filter(None, [report_parts(situation), *answers])))
        calls = tuple(call for reply in known for call in reply.calls)
        return Reply("" if calls else " ".join(answers), calls)

    def has_changed_list(self, done: Situation) -> bool:
        """Return whether the sentence changed a list, as the results of another situation tell."""
        has_calls = any('"todo.' in result.arguments for result in done.utterance.results)
        found = read_list_sentence(self._situation) if has_calls else None
        return found is not None and not found.is_question

    async def reply_otherwise(self) -> Reply | None:
        """Return the reply to a sentence that is about something else than the devices of the home."""
        promised = await self._promises.reply(None)
        return promised if promised is not None else await answer_other(self._situation)

    async def reply_about_devices(self) -> Reply | None:
        """Return the reply to a sentence that is about the devices of the home."""
        situation = self._situation
        return await self._reply_to_clauses(situation.reader.read_clauses(situation.sentence))

    def _make_part(self, text: str, chosen_ids: Sequence[str] = ()) -> "ConversationTurn":
        situation = self._situation
        part = replace(
            situation,
            sentence=situation.reader.read(text, corrects=situation.sentence.corrected),
            utterance=replace(situation.utterance, text=text, results=()),
        )
        return ConversationTurn(part, self._topics, self._turns, chosen_ids)

    def _act(self, clauses: list[Clause], questions: list[Clause] | None = None) -> Reply:
        """Return the calls for all commands, or the reason why none is made."""
        situation = self._situation
        if situation.utterance.results:
            return report_commands(
                situation, self._present, [*clauses, *(questions or ())], clauses
            ) or Reply(is_guess=True)
        if CALL_TOOL not in situation.utterance.tools:
            return Reply(situation.writer.say("command.not_allowed"), is_guess=True)
        plans = [
            self._plan_in_place(clause, [*clauses[n + 1 :][-1:], *clauses[:n][-1:]])
            for n, clause in enumerate(clauses)
        ]
        if 0 < sum(plan.is_settled for plan in plans) < len(plans):
            return self._act(_exclude_settled(clauses, plans), questions)
        # What is so already does not keep the rest of the sentence from being done.
        has_calls = any(plan.calls for plan in plans)
        problems = (plan for plan in plans if not plan.calls and not (has_calls and plan.is_already_so))
        if (problem := next(problems, None)) is not None:
            return explain_problem(situation, problem, plans, clauses)
        calls = (call for plan in plans for call in plan.calls)
        return Reply(calls=arrange_calls(calls, situation.utterance.session.policy.require_confirmation))

    def _plan_in_place(self, clause: Clause, others: list[Clause]) -> Plan:
        """Plan a clause. If it could mean several things, the place of other clauses is its place, too.

        "Turn off the light and the TV in the living room" is about the light there.
        """
        plan = self._planner.plan(clause)
        if not plan.calls and (plan.choices or plan.is_already_so):
            placed = (self._planner.plan(self._completion.add_place(clause, each)) for each in others)
            plan = next((each for each in placed if each.calls), plan)
        self._planner.expect(plan)
        return plan

    async def _answer(self, clauses: list[Clause]) -> Reply | None:
        replies: list[Reply] = []
        for clause in clauses:
            reply = await answer_about_past(self._situation, clause) or self._present.answer(clause)
            if reply is None:
                return None
            replies.append(reply)
        return join_answers(replies, clauses)


def _refers_to_answer(clause: Clause) -> bool:
    """Return whether a clause needs the last answer: "the other one", "and the bedroom?"."""
    has_own_sense = clause.do or clause.ask or clause.properties or not clause.amount.is_empty
    return bool(clause.refer & REFERS_TO_ANSWER) or not has_own_sense


def _exclude_settled(clauses: Sequence[Clause], plans: Sequence[Plan]) -> list[Clause]:
    """Return the clauses with something to do, without the things that others leave as they are.

    "Turn off the lights, and leave the lamp on".
    """
    settled = tuple(key for plan in plans if plan.is_settled for key in plan.entity_ids)
    kept = Word("", frozenset(), settled)
    return [
        replace(clause, excluded=(*clause.excluded, kept))
        for clause, plan in zip(clauses, plans, strict=True)
        if not plan.is_settled
    ]


def _means_all(clause: Clause) -> bool:
    """Return whether a clause only says "all of them" or "both"."""
    is_all = clause.is_all or clause.is_everything or "them" in clause.refer
    return is_all and not (clause.words or clause.do or clause.ask or clause.is_question)
