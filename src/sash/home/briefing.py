"""The description of the home in the model's prompt, and the changes since it was written.

The size of the description is limited, however large the home is. The model finds all other entities with
`search_index`.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from sash.home.index import HomeIndex
from sash.home.state_text import StateText, read_state_text
from sash.memory.words import split_words
from sash.ports.home import NO_STATE, Entity

MAX_ENTITIES = 500
MAX_TOKENS = 1000
MAX_CHANGES = 30
# When the listed changes exceed this size, a new briefing is written.
MAX_CHANGED_TOKENS = 1000
# Maximum number of entities that are listed because the message mentions them.
MAX_MENTIONED = 5
# A number must differ by this ratio from the last reported value to be listed as a change.
MIN_CHANGE_RATIO = 0.05

# The order of the domains: controllable entities first, then persons and settings, then sensors.
_DOMAIN_ORDER = (
    "light switch cover climate lock fan media_player alarm_control_panel vacuum valve humidifier siren",
    "person weather binary_sensor input_boolean input_number input_select select number todo",
    "sensor",
)
_RANKS = {domain: rank for rank, domains in enumerate(_DOMAIN_ORDER) for domain in domains.split()}
_LAST_RANK = len(_DOMAIN_ORDER)
_NO_AREA = "No area"
HEADING = (
    "The home {name} at {at}. Later changes are listed with the messages. Call get_states for values that "
    "must be current."
)


@dataclass(slots=True)
class HomeBriefing:
    """The state of the home as the model knows it.

    `text` is the description in the prompt. `states` holds the last reported state of each listed entity, and
    `known_ids` all entities that the home had when it was described. `changed_tokens` is the size of the
    changes that are still in the window. `index` has the present name of the home.
    """

    text: str
    states: dict[str, StateText]
    known_ids: frozenset[str]
    index: HomeIndex
    changed_tokens: int = 0


def write_briefing(
    index: HomeIndex, message: str, at: str, count_tokens: Callable[[str], int], max_tokens: int = MAX_TOKENS
) -> HomeBriefing:
    """Describe the most relevant entities by area, and count the others.

    Entities that the message mentions come first. `at` is the current time as a text.
    """
    chosen: list[Entity] = []
    by_area: dict[str, list[str]] = defaultdict(list)
    tokens = 0
    for entity in _rank_entities(index, message)[:MAX_ENTITIES]:
        area = _get_area_name(index, entity)
        tokens += count_tokens(_describe(index, entity)) + 1
        tokens += 0 if area in by_area else count_tokens(area) + 2
        if tokens > max_tokens:
            break
        by_area[area] = []
        chosen.append(entity)
    for entity in sorted(chosen, key=lambda e: (_RANKS.get(e.domain, _LAST_RANK), e.id)):
        by_area[_get_area_name(index, entity)].append(_describe(index, entity))
    areas = sorted(by_area, key=lambda area: (area == _NO_AREA, area))
    lines = [f"{area}: {'; '.join(by_area[area])}" for area in areas]
    listed = {entity.id for entity in chosen}
    others = [entity for entity in index.entities.values() if entity.id not in listed]
    lines += _count_others(index, others, count_tokens, max_tokens // 8)
    text = f"{HEADING.format(name=index.name, at=at)}\n" + "\n".join(lines)
    states = {entity.id: read_state_text(index, entity.id) for entity in chosen}
    return HomeBriefing(text if index.entities else "", states, frozenset(index.entities), index)


def describe_changes(index: HomeIndex, briefing: HomeBriefing, message: str = "") -> str:
    """Return the changes since the briefing, and entities that the message mentions. Update the briefing.

    Changes above `MAX_CHANGES` are listed with the next message. Return an empty text if nothing changed.
    """
    changed = [
        key
        for key, state in briefing.states.items()
        if key in index.entities and _has_changed(index, key, state)
    ]
    removed = [key for key in briefing.states if key not in index.entities]
    new: list[str] = []
    if briefing.index is not index:
        new = [key for key in index.entities if key not in briefing.known_ids]
        briefing.known_ids = briefing.known_ids & index.entities.keys() | frozenset(new[:MAX_CHANGES])
        briefing.index = index if len(new) <= MAX_CHANGES else briefing.index
    sections = {
        "changed": changed[:MAX_CHANGES],
        "new": new[:MAX_CHANGES],
        "removed": removed[:MAX_CHANGES],
        "perhaps meant": _find_mentioned(index, message, briefing),
    }
    for key in sections["removed"]:
        del briefing.states[key]
    for title in ("changed", "new", "perhaps meant"):
        briefing.states |= {key: read_state_text(index, key) for key in sections[title]}
    totals = {"changed": len(changed), "new": len(new), "removed": len(removed)}
    lines = []
    for title, keys in sections.items():
        entities = [_describe(index, index.entities[key]) if key in index.entities else key for key in keys]
        more = totals.get(title, 0) - len(keys)
        if keys:
            lines.append(f"{title}: {'; '.join(entities)}" + (f"; and {more} more" if more > 0 else ""))
    return "\n".join(lines)


def describe_pinned(index: HomeIndex, entity_ids: Iterable[str]) -> str:
    """Return the present states of pinned entities, one per line; empty without any."""
    lines = [
        _describe(index, index.entities[key]) if key in index.entities else f"{key} is not in the home"
        for key in dict.fromkeys(entity_ids)
    ]
    return "\n".join(("Pinned entities, at this moment:", *lines)) if lines else ""


def _find_mentioned(index: HomeIndex, message: str, briefing: HomeBriefing) -> list[str]:
    """Return the ids of entities that a message seems to mention and that the briefing does not list."""
    if not message.strip() or len(briefing.states) >= len(index.entities):
        return []
    found, _ = index.search(message, limit=MAX_MENTIONED)
    return [entity.id for entity in found if entity.id not in briefing.states]


def _rank_entities(index: HomeIndex, message: str) -> list[Entity]:
    """Return all entities sorted: mentioned ones first, then by domain, active ones before idle ones."""
    found, _ = index.search(message, limit=MAX_MENTIONED)
    mentioned = {entity.id for entity in found} if message.strip() else set()

    def rank(entity: Entity) -> tuple[bool, int, bool, str]:
        is_idle = index.get_state(entity.id) in ("off", *NO_STATE)
        return entity.id not in mentioned, _RANKS.get(entity.domain, _LAST_RANK), is_idle, entity.id

    return sorted(index.entities.values(), key=rank)


def _describe(index: HomeIndex, entity: Entity) -> str:
    """Return the id and the state of an entity, and its name only if the id does not contain it."""
    is_name_needed = not set(split_words(entity.name)) <= set(split_words(entity.id.replace("_", " ")))
    name = f" “{entity.name}”" if is_name_needed else ""
    return f"{entity.id}{name} {read_state_text(index, entity.id)}".rstrip()


def _get_area_name(index: HomeIndex, entity: Entity) -> str:
    area = index.get_area(entity)
    return area.name if area else _NO_AREA


def _count_others(
    index: HomeIndex, others: list[Entity], count_tokens: Callable[[str], int], max_tokens: int
) -> Iterable[str]:
    """Yield at most one line: the numbers of unlisted entities by area, within the token limit."""
    by_area = Counter(_get_area_name(index, entity) for entity in others)
    parts: list[str] = []
    tokens = 0
    for area, number in by_area.most_common():
        tokens += count_tokens(f"{area} {number}, ")
        if tokens > max_tokens:
            parts.append(f"and {len(by_area) - len(parts)} more areas")
            break
        parts.append(f"{area} {number}")
    if parts:
        yield f"Not listed, to be found with search_index: {', '.join(parts)}"


def _has_changed(index: HomeIndex, entity_id: str, reported: StateText) -> bool:
    """Return whether the current state differs from `reported`. Small changes of numbers do not count."""
    state = read_state_text(index, entity_id)
    if state.other_text != reported.other_text:
        return True
    now, before = state.measured, reported.measured
    if now is None or before is None:
        return now is not before
    return abs(now - before) > MIN_CHANGE_RATIO * max(abs(before), 1.0)
