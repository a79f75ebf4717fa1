"""Matching of a sentence's words with the entities that a search returned."""

import re
from collections.abc import Iterable
from typing import Any

from sash.memory.words import split_words, stem
from sash.models.offline.sentence import Sentence, extract_names

_SEPARATOR = re.compile(r"\b(?:and|or|und|oder)\b|,", re.I)
_RULE_DOMAINS = ("automation", "scene", "script")


def find_missing_names(sentence: Sentence, search_result: dict[str, Any]) -> list[str]:
    """Return the names in a sentence that the best match of a search does not have.

    If the subject lists several things, a name is missing only if no entity has it. The verb at the end of
    "why did the light flicker" does not count.
    """
    names, unmatched = extract_names(sentence.subject), set(search_result.get("unmatched") or ())
    missing = [name for name in names if name in unmatched]
    if _SEPARATOR.search(sentence.subject):
        return [name for name in missing if not is_in_any_name(name, search_result.get("entities", ()))]
    if sentence.kind == "why" and len(missing) < len(names):
        while names and names[-1] in unmatched:
            missing.remove(names.pop())
    return missing


def select_entities(subject: str, entities: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return those entities that the subject means, for each thing that the subject lists."""
    parts = [part for part in dict.fromkeys(_SEPARATOR.split(subject)) if extract_names(part)]
    if len(parts) < 2:
        return _select_best(subject, entities)
    selected = [entity for part in parts for entity in _select_best(part, _rank(part, entities))]
    return list({entity["entity_id"]: entity for entity in selected}.values())


def contains_name(subject: str, entity: dict[str, Any]) -> bool:
    """Whether the subject has all words of the entity's name."""
    subject_words, name_words = split_words(subject), split_words(str(entity.get("name") or ""))
    return bool(name_words) and all(
        any(_is_same_word(word, other) for other in subject_words) for word in name_words
    )


def is_in_any_name(word: str, entities: Iterable[dict[str, Any]]) -> bool:
    """Whether at least one entity has the word in its name, its area or its id."""
    return any(_find_matches([word], entity) for entity in entities)


def _rank(subject: str, entities: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the entities with at least one name of the subject, best match first."""
    names = extract_names(subject)
    matches = {entity["entity_id"]: len(_find_matches(names, entity)) for entity in entities}
    matching = [entity for entity in entities if matches[entity["entity_id"]]]
    return sorted(matching, key=lambda entity: -matches[entity["entity_id"]])


def _select_best(subject: str, entities: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the entities that match the same names as the first one, or those with the subject's exact name.

    If the first entity matches no name, the search may have found it by an alias, which is not visible here.
    Then a subject of several names means only the first entity.
    """
    names = extract_names(subject)
    best = _find_matches(names, entities[0]) if entities else frozenset()
    if not best:
        return entities[:1] if len(names) > 1 else entities
    equal = [entity for entity in entities if best <= _find_matches(names, entity)]
    exact = [entity for entity in equal if contains_name(subject, entity)]
    return exact or _drop_rules(subject, equal)


def _drop_rules(subject: str, entities: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Drop automations, scenes and scripts, unless the subject names them or nothing else is left."""
    words = split_words(subject)
    if any(_is_same_word(rule, word) for rule in (*_RULE_DOMAINS, "szene", "skript") for word in words):
        return entities
    return [e for e in entities if e["entity_id"].partition(".")[0] not in _RULE_DOMAINS] or entities


def _find_matches(names: Iterable[str], entity: dict[str, Any]) -> frozenset[str]:
    """Return those of `names` that occur in the entity's name, its area or its id."""
    text = f"{entity.get('name', '')} {entity.get('area', '')} {entity['entity_id'].replace('_', ' ')}"
    words = split_words(text)
    return frozenset(name for name in names if any(_is_same_word(name, word) for word in words))


def _is_same_word(one: str, other: str) -> bool:
    """Whether two words are equal except for their endings."""
    if min(len(one), len(other)) < 4:
        return one == other
    return one.startswith(stem(other)) or other.startswith(stem(one))
