"""Asks which of several things is meant, and says if the answer would make no difference."""

from collections.abc import Sequence

from sash.home.index import HomeIndex
from sash.intents.acting.act import Act
from sash.intents.acting.already_so import MAX_NAMED, is_already_so
from sash.intents.answers.writer import AnswerWriter
from sash.ports.home import Entity

# So many things or rooms are examples of many.
EXAMPLES = 3


def ask_which(entities: Sequence[Entity], index: HomeIndex, writer: AnswerWriter) -> str:
    """Return the question which of some entities is meant, with their names, or with the rooms of many."""
    if len(entities) <= MAX_NAMED:
        return writer.say("ask.which", names=writer.names(entities, "or"))
    areas = {area.id: area for entity in entities if (area := index.get_area(entity)) is not None}
    if len(areas) < 2:
        return writer.say("ask.which_of_many", names=writer.names(entities[:EXAMPLES], "or"))
    named = list(areas.values())[: None if len(areas) <= MAX_NAMED else EXAMPLES]
    key = "ask.which_room" if len(areas) <= MAX_NAMED else "ask.which_of_many_rooms"
    return writer.say(key, names=writer.join([writer.name(area) for area in named], "or"))


def are_already_so(entities: Sequence[Entity], act: Act, index: HomeIndex) -> bool:
    """Return whether an act would change nothing, whichever of the entities is meant."""
    return act.amount.is_empty and all(is_already_so(act, index.get_state(each.id)) for each in entities)
