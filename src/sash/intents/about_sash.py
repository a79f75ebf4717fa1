"""Answers questions about what Sash did and why, from the earlier turns and their actions."""

from collections.abc import Sequence

from sash.intents.quotes import quote
from sash.intents.situation import Reply, Situation
from sash.intents.topic import read_topic
from sash.intents.words.phrases import Match, choose_matches
from sash.ports.home import NO_STATE
from sash.values.action_explanation import ActionExplanation
from sash.values.citations import HistoryCitation
from sash.values.continuations import Action, Continuation

# The turns before a question in which an action is looked for.
MAX_TURNS = 10
MAX_NAMED = 3
_MEANINGS = frozenset(
    {
        "why_did",
        "why_not",
        "who_asked",
        "what_did",
        "did_it_work",
        "allowed",
        "heard",
        "repeat",
        "which_model",
        "permission",
        "source",
    }
)
_AROUND_WHY = ("filler", "soft", "talk", "join", "refer")
_TIME_ASKS = frozenset({"ask.when", "ask.how_long", "ask.how_often", "ask.why"})
# The questions that are answered from the records of a home.
_OF_RECORDS = frozenset({"when", "who", "why", "how_long", "how_often", "last", "happen"})
# The other words of such a question may say what was done, and to what.
_AROUND = (
    "name",
    "kind",
    "room",
    "noun",
    "do",
    "ask",
    "refer",
    "not",
    "value",
    "time",
    "join",
    "filler",
    "any",
    "talk",
)
# Questions about models may use other words, too, but name no thing.
_AROUND_MODEL = frozenset({"name", "kind", "room", "noun"})
# The states of these say nothing about what was done to them.
_STATELESS = frozenset({"script", "scene", "button", "input_button", "automation", "todo", "event", "notify"})


async def answer_about_sash(situation: Situation) -> Reply | None:
    """Return the reply to a question about Sash and its actions; None for any other sentence."""
    meaning = _find_meaning(situation) or await _ask_why_alone(situation)
    if meaning is None:
        return None
    if meaning == "permission":
        return Reply(_describe_permission(situation))
    turns = await situation.utterance.dialogue.list_recent(MAX_TURNS)
    if meaning == "source":
        return Reply(_describe_source(situation, turns[-1] if turns else None))
    if meaning == "repeat":
        return await _repeat(situation, turns[-1] if turns else None)
    if meaning in ("heard", "which_model"):
        heard = next((turn for turn in reversed(turns) if turn.request.fired is None), None)
        if heard is None and meaning == "heard" and (said := await situation.utterance.dialogue.list_said(1)):
            # The turns of a copied session are not copied.
            return Reply(situation.writer.say("self.heard", sentence=quote(said[0].text)))
        return Reply(_describe_turn(situation, meaning, heard))
    if meaning == "allowed" and not any(match.kind == "refer" for match in situation.sentence.matches):
        return Reply(_describe_permission(situation))
    actions = _find_last_actions(turns)
    last = actions[-1] if actions else None
    is_refused = last is not None and last.outcome in ("denied", "dry_run")
    has_just_acted = bool(turns and turns[-1].response and turns[-1].response.actions)
    if is_refused or (meaning == "why_not" and not (has_just_acted and last and last.outcome == "done")):
        return _explain_refusal(situation, last if is_refused or has_just_acted else None, turns)
    explanation = await _find_explanation(situation)
    if explanation is None:
        return Reply(situation.writer.say("self.nothing_done"))
    meaning = "what_did" if meaning == "why_not" else meaning
    return Reply(_explain(situation, meaning, explanation, actions))


def _find_meaning(situation: Situation) -> str | None:
    """Return what the sentence asks, if all its words belong to such a question."""
    sentence = situation.sentence
    found = next((match for match in sentence.find("self")), None)
    if found is None or found.value not in _MEANINGS or sentence.find("absence"):
        return None
    if found.value == "why_not" and any(match.tag == "do.broken" for match in sentence.matches):
        return None  # "Why does the sensor not work?" is no question about Sash.
    if found.value == "which_model" and any(match.kind == "property" for match in sentence.matches):
        return None  # "What did the electricity cost?"
    if found.value == "did_it_work" and any(m.tag in _TIME_ASKS or _is_day(m) for m in sentence.matches):
        return None  # "Quando ha fatto l'ultimo giro Robby?"
    compared = {match.value for match in sentence.find("compare")}
    if compared & {"before", "usual"}:
        return None
    around = [match for kind in _AROUND for match in sentence.matches if match.kind == kind]
    chosen = choose_matches(around, found.places)
    covered = {*found.places, *(place for match in chosen for place in match.places)}
    has_more = any(word[0].isalnum() and place not in covered for place, word in enumerate(sentence.words))
    if found.value == "which_model":
        return None if any(match.kind in _AROUND_MODEL for match in chosen) else found.value
    if has_more:
        return None
    is_about_day = found.value == "heard" and any(_is_day(match) for match in chosen)
    return None if is_about_day else found.value


async def _ask_why_alone(situation: Situation) -> str | None:
    """Return the meaning of a bare "why?" after an action; None for any other sentence."""
    if situation.sentence.covers("ask", more=_AROUND_WHY) != "why":
        return None
    turns = await situation.utterance.dialogue.list_recent(1)
    has_acted = bool(turns and turns[-1].response and turns[-1].response.actions)
    return "why_did" if has_acted else None


def _is_day(match: Match) -> bool:
    return match.kind == "time" and match.value not in ("at", "in", "for", "since", "until", "before")


def _find_last_actions(turns: Sequence[Continuation]) -> tuple[Action, ...]:
    """Return the actions of the newest turn that has any, also those that were denied."""
    return next(
        (turn.response.actions for turn in reversed(turns) if turn.response and turn.response.actions), ()
    )


async def _find_explanation(situation: Situation) -> ActionExplanation | None:
    """Explain the newest action, or the newest one on an entity that the sentence names."""
    dialogue = situation.utterance.dialogue
    newest = await dialogue.explain_action()
    named = _find_named(situation)
    if not named or (newest is not None and named.intersection(newest.entity_ids)):
        return newest
    found = [await dialogue.explain_action(entity_id) for entity_id in sorted(named)[:MAX_NAMED]]
    known = [one for one in found if one is not None]
    return max(known, key=lambda one: one.acted_at, default=None)


def _find_named(situation: Situation) -> frozenset[str]:
    """Return the entities that all describing words of the sentence fit."""
    found: frozenset[str] | None = None
    for clause in situation.reader.read_clauses(situation.sentence):
        for word in clause.words:
            ids = frozenset(word.entity_ids) or situation.words.find(word.keys)
            found = ids if found is None else found & ids
    return found or frozenset()


def _explain(
    situation: Situation, meaning: str, explanation: ActionExplanation, actions: Sequence[Action]
) -> str:
    if meaning == "why_did":
        return _explain_reason(situation, explanation)
    if meaning == "who_asked":
        return _say_about(situation, f"self.asked_{_find_asker(situation, explanation)}", explanation)
    if meaning == "allowed":
        return _join(situation, "self.allowed", "self.confirmed" if explanation.approved else None)
    states = _describe_states(situation, explanation, actions)
    if meaning == "what_did":
        key = "self.did_not" if explanation.outcome == "failed" else "self.did_so" if states else "self.did"
        return _say_about(situation, key, explanation, states=states)
    if explanation.outcome != "done":
        return situation.writer.say(f"self.work_{explanation.outcome}")
    if explanation.verified is None:
        return situation.writer.say("self.work_unseen")
    key = "self.worked" if explanation.verified else "self.work_without_effect"
    return situation.writer.say(f"{key}_so" if states else key, states=states)


def _explain_reason(situation: Situation, explanation: ActionExplanation) -> str:
    reason = _say_about(situation, f"self.why_{_find_asker(situation, explanation)}", explanation)
    rest = _join(
        situation,
        "self.confirmed" if explanation.approved else None,
        "self.model_chose" if explanation.way == "model" else None,
    )
    return f"{reason} {rest}".strip()


def _say_about(situation: Situation, key: str, explanation: ActionExplanation, *, states: str = "") -> str:
    asked_at = explanation.asked_at.astimezone(situation.now.tzinfo)
    return situation.writer.say(
        key,
        sentence=quote(explanation.sentence),
        when=situation.writer.moment(asked_at, situation.now),
        name=explanation.caller.user_name if explanation.caller else "",
        states=states,
    )


def _find_asker(situation: Situation, explanation: ActionExplanation) -> str:
    """Return whether "you", a person by "name", or somebody "unknown" asked for an action."""
    speaker, asker = situation.utterance.caller, explanation.caller
    if asker is None or asker.user_id is None:
        is_here = explanation.session_id == situation.utterance.session.id
        return "you" if is_here or speaker is None or speaker.user_id is None else "unknown"
    if speaker is not None and speaker.user_id == asker.user_id:
        return "you"
    return "name" if asker.user_name else "unknown"


def _explain_refusal(situation: Situation, last: Action | None, turns: Sequence[Continuation]) -> Reply:
    """Say why something was not done."""
    say = situation.writer.say
    if last is not None and last.outcome == "denied":
        return Reply(say("self.you_said_no" if last.approved is False else "self.not_allowed"))
    if last is not None and last.outcome == "failed":
        return Reply(say("self.tried"))
    if last is not None and last.outcome == "dry_run":
        return Reply(say("self.source_trial"))
    answer = turns[-1].response.final_message if turns and turns[-1].response else ""
    if not answer and any(match.kind in ("name", "kind") for match in situation.sentence.matches):
        return Reply(_describe_permission(situation))  # "Why can't you open the garage?"
    if not answer:
        return Reply(say("self.nothing_asked"))
    return Reply(say("self.my_answer", answer=quote(answer)), is_guess=True)


def _describe_turn(situation: Situation, meaning: str, turn: Continuation | None) -> str:
    """Say what was heard in a turn, or whether a model answered it."""
    say = situation.writer.say
    if turn is None:
        return say("self.nothing_said")
    if meaning == "heard":
        return say("self.heard", sentence=quote(turn.request.message))
    used_model = turn.stats is not None and turn.stats.model_calls > 0
    return say("self.model_answered" if used_model else "self.local_answered")


def _describe_source(situation: Situation, turn: Continuation | None) -> str:
    """Say where the last answer is from: an action, the history of things, or what they report."""
    say, index = situation.writer.say, situation.index
    response = turn.response if turn else None
    if response is None:
        return say("self.nothing_said")
    if response.actions:
        return _describe_actions(situation, response.actions)
    topic = read_topic(response.topic)
    ids = [*(topic.entity_ids if topic else ()), *(getattr(c, "entity_id", None) for c in response.citations)]
    entities = [index.entities[key] for key in dict.fromkeys(ids) if key in index.entities][:MAX_NAMED]
    is_past = any(isinstance(citation, HistoryCitation) for citation in response.citations)
    clauses = topic.clauses[-1:] if topic else ()
    is_past = is_past or any(c.tense == "past" or _OF_RECORDS.intersection((*c.ask, *c.do)) for c in clauses)
    if is_past:
        names = situation.writer.names(entities)
        return say("self.source_history", names=names) if entities else say("self.source_logbook")
    return (
        say("self.source_state", names=situation.writer.names(entities))
        if entities
        else say("self.source_any")
    )


def _describe_actions(situation: Situation, actions: Sequence[Action]) -> str:
    """Say how the outcome of some actions is known, or why one of them was not done."""
    undone = next((action for action in actions if action.outcome != "done"), None)
    if undone is not None:
        key = {
            "denied": "source_denied" if undone.approved is False else "source_not_allowed",
            "dry_run": "source_trial",
            "failed": "tried",
        }.get(undone.outcome, "work_unknown")
    elif any(action.verified is False for action in actions):
        key = "work_without_effect"
    elif any(action.verified is None for action in actions):
        key = "work_unseen"
    else:
        key = "source_action"
    return situation.writer.say(f"self.{key}")


async def _repeat(situation: Situation, turn: Continuation | None) -> Reply:
    """Say the last answer again, for a user who did not hear it."""
    answer = turn.response.final_message if turn is not None and turn.response else ""
    if turn is None:
        answer = await situation.utterance.dialogue.find_last_answer()
    return Reply(answer or situation.writer.say("self.nothing_answered"))


def _describe_permission(situation: Situation) -> str:
    policy = situation.utterance.session.policy
    if not policy.allow_actuation or "call_service" not in situation.utterance.tools:
        return _join(situation, "self.may_only_answer", "self.permission")
    return _join(situation, "self.may_act", "self.asks_first" if policy.require_confirmation else None)


def _join(situation: Situation, *keys: str | None) -> str:
    return " ".join(situation.writer.say(key) for key in keys if key)


def _describe_states(situation: Situation, explanation: ActionExplanation, actions: Sequence[Action]) -> str:
    """Return the states that an action led to: "the kitchen light is on". Empty if they say nothing."""
    index, writer = situation.index, situation.writer
    after = {entity_id: state for action in actions for entity_id, state in action.after.items()}
    shown = [
        (index.entities[entity_id], str(state["state"]))
        for entity_id, state in after.items()
        if entity_id in index.entities
        and entity_id.partition(".")[0] not in _STATELESS
        and isinstance(state, dict)
        and state.get("state") not in (None, *NO_STATE)
    ]
    if not 0 < len(shown) <= MAX_NAMED or not {each.id for each, _ in shown}.intersection(
        explanation.entity_ids
    ):
        return ""
    return writer.join(
        writer.phrase(
            "self.state",
            name=writer.name(entity),
            state=writer.state_name(state, index.get_device_class(entity.id)).replace("_", " "),
        )
        for entity, state in shown
    )
