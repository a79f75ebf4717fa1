"""Plans: the calls for a clause, or the reason why there are none; and clauses that mean given entities."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from sash.intents.sentence.clause import Clause, Word
from sash.intents.situation import PlannedCall
from sash.ports.home import Entity


@dataclass(frozen=True, slots=True)
class Plan:
    """The calls for a clause, or a sentence that says why there are none.

    `entity_ids` are the things that the clause means. `choices` are the things that a question offers. With
    `is_refused` the sentence says what cannot be done. With `is_unsure` a word of the clause is not known.
    With `is_settled` nothing is to be done, because the things stay as the clause says. With `is_already_so`
    the clause could mean several things, and all of them already are as it says.
    """

    calls: tuple[PlannedCall, ...] = ()
    text: str = ""
    entity_ids: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()
    is_refused: bool = False
    is_unsure: bool = False
    is_settled: bool = False
    is_already_so: bool = False


def choose_from(clause: Clause, choices: Iterable[str], index_entities: Mapping[str, Entity]) -> Clause:
    """Return a clause that means these entities, whatever words it had."""
    ids = tuple(key for key in choices if key in index_entities)
    name = index_entities[ids[0]].name if ids else ""
    return replace(clause, words=(Word(name, frozenset(), ids),), excluded=(), refer=frozenset())


def choose_all(clause: Clause, choices: Iterable[str], index_entities: Mapping[str, Entity]) -> Clause:
    """Return a clause that means all of these entities."""
    return replace(choose_from(clause, choices, index_entities), is_all=True)


def list_ids(entities: Iterable[Entity]) -> tuple[str, ...]:
    return tuple(entity.id for entity in entities)
