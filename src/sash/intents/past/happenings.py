"""Answers what happened in a time: the changes that matter, and how many others there were."""

from collections.abc import Iterable, Sequence
from datetime import timedelta

from sash.intents.past.asked_states import AskedState, find_asked_state
from sash.intents.past.changes import describe_change
from sash.intents.past.question import PastQuestion
from sash.intents.past.span_words import SpanWords
from sash.intents.past.state_periods import Period, read_record
from sash.intents.situation import Situation
from sash.ports.home import Entity

MAX_SPAN = timedelta(days=7)
MAX_ITEMS = 6
# The histories that are read to find the items.
MAX_HISTORIES = 24
# What matters in a home, most first: an act of a kind of entity. Other changes are only counted.
_ACTS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("leak", ("binary_sensor",)),
    ("trigger", ("alarm_control_panel",)),
    ("unlock", ("lock",)),
    ("open", ("binary_sensor", "cover", "valve")),
    ("home", ("person",)),
    ("away", ("person",)),
    ("arm", ("alarm_control_panel",)),
    ("moving", ("binary_sensor",)),
    ("on", ("light", "switch", "media_player", "fan", "vacuum", "climate", "siren")),
)


async def answer_happenings(situation: Situation, question: PastQuestion, words: SpanWords) -> str:
    """Return what happened in the span of a question, to its targets or in the whole home."""
    writer, span = situation.writer, question.span
    assert span is not None
    start, home = max(span.start, span.end - MAX_SPAN), situation.home.home
    wanted = [target.entity.id for target in question.targets]
    entries = await home.get_logbook(start, span.end, wanted)
    changed = dict.fromkeys(
        entry.entity_id for entry in entries if entry.entity_id in situation.index.entities
    )
    entities = [situation.index.entities[key] for key in changed if key is not None]
    chosen = rank(situation, entities)[:MAX_HISTORIES]
    histories = await home.get_history([entity.id for entity, _ in chosen], start, span.end)
    found: list[tuple[Entity, AskedState, tuple[Period, ...]]] = []
    for entity, asked in chosen:
        record = read_record(histories.get(entity.id, []), asked, start, span.end)
        if record is not None and record.begun:
            found.append((entity, asked, record.begun))
    if not found:
        return writer.say("past.happened_nothing", span=words.say_span())
    shown = found[:MAX_ITEMS]
    items = [_say_item(situation, words, entity, asked, begun) for entity, asked, begun in shown]
    text = writer.say("past.happened", span=words.say_span(), items=writer.join(items))
    others = len(entities) - len(shown)
    key = "past.happened_one" if others == 1 else "past.happened_more"
    return f"{text} {writer.say(key, count=others)}" if others > 0 else text


def rank(situation: Situation, entities: Iterable[Entity]) -> Sequence[tuple[Entity, AskedState]]:
    """Return the entities whose changes matter, with the state that matters, most important first."""
    found: dict[str, tuple[int, Entity, AskedState]] = {}
    for entity in entities:
        device_class = situation.index.get_device_class(entity.id)
        for importance, (act, domains) in enumerate(_ACTS):
            asked = find_asked_state(act, entity.domain, device_class) if entity.domain in domains else None
            if asked is not None:
                found.setdefault(entity.id, (importance, entity, asked))
    ordered = sorted(found.values(), key=lambda each: each[0])
    return [(entity, asked) for _, entity, asked in ordered]


def _say_item(
    situation: Situation, words: SpanWords, entity: Entity, asked: AskedState, begun: Sequence[Period]
) -> str:
    return describe_change(situation, entity, asked, words.say_times(begun))
