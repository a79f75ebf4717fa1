"""What a model is told of the house: once what matters of it, and then what has changed since it was told.

Bounded, however large the house is: what is not in here is found by `search_index`.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from sash.home.history import as_number
from sash.home.index import Index
from sash.memory.words import split_words
from sash.ports.home import NO_STATE, Entity

MAX_ENTITIES = 500
MAX_TOKENS = 1000
MAX_CHANGES = 30
# When what has changed takes so much room, the house is told anew.
MAX_CHANGED_TOKENS = 1000
# How many of the entities that a message seems to speak of are told with it, or come first.
MAX_MEANT = 5
# A number has changed if it is so far from what was told.
MOVED = 0.05

# What is told first: what can be switched, then what is measured, then the rest.
_ORDER = (
    "light switch cover climate lock fan media_player alarm_control_panel vacuum valve humidifier siren",
    "person weather binary_sensor input_boolean input_number input_select select number todo",
    "sensor",
)
_RANKS = {domain: rank for rank, domains in enumerate(_ORDER) for domain in domains.split()}
_LAST = len(_ORDER)
_ELSEWHERE = "No area"
HEADING = (
    "The house ({name}) at {at}. What has changed since then stands with the messages; for what has to be "
    "right just now, ask get_states."
)


@dataclass(slots=True)
class HomeBriefing:
    """What a model was told of a house: `text`, and the state of each entity since then.

    `changed_tokens` is how much the changes take that still stand with the messages.
    """

    text: str
    states: dict[str, str]
    known: frozenset[str]
    index: Index
    changed_tokens: int = 0


def overview(
    index: Index, message: str, at: str, count: Callable[[str], int], most_tokens: int = MAX_TOKENS
) -> HomeBriefing:
    """Tell of a house: the entities that matter, by area, and how many others there are."""
    chosen: list[Entity] = []
    by_area: dict[str, list[str]] = defaultdict(list)
    tokens = 0
    for entity in _ranked(index, message)[:MAX_ENTITIES]:
        area = _area(index, entity)
        tokens += count(_line(index, entity)) + 1 + (0 if area in by_area else count(area) + 2)
        if tokens > most_tokens:
            break
        by_area[area] = []
        chosen.append(entity)
    for entity in sorted(chosen, key=lambda e: (_RANKS.get(e.domain, _LAST), e.id)):
        by_area[_area(index, entity)].append(_line(index, entity))
    lines = [f"{area}: {'; '.join(by_area[area])}" for area in sorted(by_area, key=_elsewhere_last)]
    listed = {entity.id for entity in chosen}
    left = [entity for entity in index.entities.values() if entity.id not in listed]
    lines += _left_out(index, left, count, most_tokens // 8)
    text = f"{HEADING.format(name=index.name, at=at)}\n" + "\n".join(lines)
    states = {entity.id: index.state(entity.id) for entity in chosen}
    return HomeBriefing(text if index.entities else "", states, frozenset(index.entities), index)


def changes(index: Index, told: HomeBriefing, message: str = "") -> str:
    """Say what is not as it was told any more, and what the message may speak of; take it as told.

    What there is no room for is told with the next message.
    """
    changed = [
        key for key, state in told.states.items() if key in index.entities and _moved(index, key, state)
    ]
    gone = [key for key in told.states if key not in index.entities]
    new: list[str] = []
    if told.index is not index:
        new = [key for key in index.entities if key not in told.known]
        told.known = told.known & index.entities.keys() | frozenset(new[:MAX_CHANGES])
        told.index = index if len(new) <= MAX_CHANGES else told.index
    sections = {
        "changed": changed[:MAX_CHANGES],
        "new": new[:MAX_CHANGES],
        "removed": gone[:MAX_CHANGES],
        "perhaps meant": _meant(index, message, told),
    }
    for key in sections["removed"]:
        del told.states[key]
    for title in ("changed", "new", "perhaps meant"):
        told.states |= {key: index.state(key) for key in sections[title]}
    more = {"changed": len(changed), "new": len(new), "removed": len(gone)}
    return "\n".join(
        f"{title}: {'; '.join(_told(index, key) for key in keys)}{_and_more(more.get(title, 0) - len(keys))}"
        for title, keys in sections.items()
        if keys
    )


def _meant(index: Index, message: str, told: HomeBriefing) -> list[str]:
    """Return entities that a message seems to speak of and that were not told of."""
    if not message.strip() or len(told.states) >= len(index.entities):
        return []
    found, _ = index.search(message, most=MAX_MEANT)
    return [entity.id for entity in found if entity.id not in told.states]


def _told(index: Index, entity_id: str) -> str:
    entity = index.entities.get(entity_id)
    return entity_id if entity is None else _line(index, entity)


def _and_more(number: int) -> str:
    return f"; and {number} more" if number > 0 else ""


def _ranked(index: Index, message: str) -> list[Entity]:
    """Return all entities: first those that are spoken of, then by kind, what is on before what is off."""
    found, _ = index.search(message, most=MAX_MEANT)
    meant = {entity.id for entity in found} if message.strip() else set()

    def rank(entity: Entity) -> tuple[bool, int, bool, str]:
        idle = index.state(entity.id) in ("off", *NO_STATE)
        return entity.id not in meant, _RANKS.get(entity.domain, _LAST), idle, entity.id

    return sorted(index.entities.values(), key=rank)


def _line(index: Index, entity: Entity) -> str:
    """Write an entity in a few tokens: its id, its name if that says more, its state."""
    state = index.states.get(entity.id)
    says_more = not set(split_words(entity.name)) <= set(split_words(entity.id.replace("_", " ")))
    name = f" “{entity.name}”" if says_more else ""
    unit = f" {state.unit}" if state and state.unit else ""
    return f"{entity.id}{name} {index.state(entity.id)}{unit}"


def _area(index: Index, entity: Entity) -> str:
    area = index.area(entity)
    return area.name if area else _ELSEWHERE


def _elsewhere_last(area: str) -> tuple[bool, str]:
    return area == _ELSEWHERE, area


def _left_out(
    index: Index, left: list[Entity], count: Callable[[str], int], most_tokens: int
) -> Iterable[str]:
    """Say how many entities there are that are not listed, area by area as long as there is room."""
    by_area = Counter(_area(index, entity) for entity in left)
    parts: list[str] = []
    tokens = 0
    for area, number in by_area.most_common():
        tokens += count(f"{area} {number}, ")
        if tokens > most_tokens:
            parts.append(f"and {len(by_area) - len(parts)} more areas")
            break
        parts.append(f"{area} {number}")
    if parts:
        yield f"Not listed, to be found with search_index: {', '.join(parts)}"


def _moved(index: Index, entity_id: str, told: str) -> bool:
    """Whether a state is another one than was told; a number that has hardly moved is the same."""
    state = index.state(entity_id)
    if state == told:
        return False
    now, before = as_number(state), as_number(told)
    if now is None or before is None:
        return True
    return abs(now - before) > MOVED * max(abs(before), 1.0)
