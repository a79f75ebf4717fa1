"""Says what the commands of one sentence did, or why they did nothing, and joins answers."""

import json
from collections.abc import Sequence
from dataclasses import replace

from sash.intents.acting.options import find_option
from sash.intents.acting.plan import Plan
from sash.intents.acting.report import report_results
from sash.intents.asking.present import PresentAnswers
from sash.intents.sentence.clause import Clause
from sash.intents.shopping import report_items
from sash.intents.situation import Reply, Situation
from sash.intents.topic import Topic
from sash.intents.waiting.promise_report import report_promised
from sash.intents.words.tokens import split_words


def report_commands(
    situation: Situation, present: PresentAnswers, completed: Sequence[Clause], commands: Sequence[Clause]
) -> Reply | None:
    """Return what the calls have done, with the answers to the questions of the same sentence."""
    results = situation.utterance.results
    text = report_results(results, situation.index, situation.writer)
    for clause in completed:
        reply = None if clause in commands else present.answer(clause)
        if reply is not None and not reply.is_guess:
            text = f"{text} {reply.text}"
    if text and any(_names_title(situation, clause) for clause in commands):
        text = f"{text} {situation.writer.say('cannot.title_there')}"
    entity_ids = tuple(dict.fromkeys(key for result in results for key in _list_targets(result.arguments)))
    undone = {key for c in commands if c.takes_back for word in c.words for key in word.entity_ids}
    commands = [clause for clause in commands if not clause.takes_back]
    topic = Topic("command", tuple(commands), tuple(key for key in entity_ids if key not in undone))
    return Reply(text, topic=topic.to_json()) if text else None


def _names_title(situation: Situation, clause: Clause) -> bool:
    """Return whether a clause also names something else than the source of a player: a film, or a song."""
    chosen = find_option(situation, clause)
    if chosen is None or chosen.field != "source":
        return False
    of_source = set(split_words(chosen.option))
    return any(of_source.isdisjoint(split_words(word)) for word in clause.unknown)


def report_parts(situation: Situation) -> str:
    """Return what all calls of the sentence have done."""
    results = situation.utterance.results
    about_lists = [result for result in results if '"todo.' in result.arguments]
    others = [result for result in results if result not in about_lists]
    listed = replace(situation, utterance=replace(situation.utterance, results=tuple(about_lists)))
    promised = report_promised(situation)
    parts = [
        report_results(others, situation.index, situation.writer),
        promised,
        (report_items(listed) or Reply()).text if about_lists else "",
    ]
    return " ".join(filter(None, parts))


def explain_problem(
    situation: Situation, problem: Plan, plans: Sequence[Plan], clauses: Sequence[Clause]
) -> Reply:
    """Return why nothing is done, or the question which thing is meant."""
    text = problem.text
    if len(plans) > 1 and problem.is_refused:
        text = f"{text} {situation.writer.say('command.nothing_done')}"
    n = plans.index(problem)
    if problem.choices:
        ordered = (*clauses[:n], *clauses[n + 1 :], clauses[n])
        topic = Topic("offer", ordered, choices=problem.choices)
        return Reply(text, topic=topic.to_json(), is_guess=problem.is_unsure)
    topic = Topic("other", (clauses[n],), problem.entity_ids)
    is_guess = problem.is_unsure or (problem.is_refused and situation.utterance.has_model)
    return Reply(text, topic=topic.to_json(), is_guess=is_guess)


def join_answers(replies: Sequence[Reply], clauses: Sequence[Clause]) -> Reply:
    """Return one reply with all answers to the questions of a sentence."""
    if len(replies) == 1 and (replies[0].topic or {}).get("kind"):
        return replies[0]
    entity_ids = tuple(
        dict.fromkeys(key for reply in replies for key in (reply.topic or {}).get("entity_ids", ()))
    )
    topic = Topic("question", tuple(clauses), entity_ids)
    return Reply(
        " ".join(reply.text for reply in replies),
        topic=topic.to_json(),
        citations=tuple(citation for reply in replies for citation in reply.citations),
        is_guess=any(reply.is_guess for reply in replies),
    )


def _list_targets(arguments: str) -> list[str]:
    try:
        value = json.loads(arguments)
    except ValueError:
        return []
    return [str(key) for key in value.get("entity_ids") or ()] if isinstance(value, dict) else []
