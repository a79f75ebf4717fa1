"""The topics of a turn, as tags such as `context:lights`, from the entities and services that it touched."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

MAX_TOPICS = 4
# Topics are found in this many characters of a tool's result.
MAX_RESULT_CHARS = 16 << 10

# The topic of each domain of Home Assistant. Other domains have no topic.
TOPICS = {
    "light": "lights",
    "switch": "switches",
    "input_boolean": "switches",
    "climate": "climate",
    "water_heater": "climate",
    "humidifier": "climate",
    "fan": "climate",
    "weather": "weather",
    "sun": "weather",
    "lock": "security",
    "alarm_control_panel": "security",
    "camera": "security",
    "siren": "security",
    "cover": "covers",
    "valve": "covers",
    "media_player": "media",
    "remote": "media",
    "vacuum": "cleaning",
    "lawn_mower": "cleaning",
    "person": "presence",
    "device_tracker": "presence",
    "zone": "presence",
    "calendar": "calendar",
    "todo": "lists",
    "shopping_list": "lists",
    "timer": "timers",
    "automation": "automations",
    "script": "automations",
    "scene": "automations",
    "sensor": "sensors",
    "binary_sensor": "sensors",
}
# An entity id, the name of a service, or a domain that is an argument of its own.
_NAME = re.compile(r'(?<![\w.])([a-z_]{3,24})\.[a-z0-9_]+|"domain": ?"([a-z_]{3,24})"')


def find_topics(messages: Sequence[dict[str, Any]], entity_ids: Iterable[str] = ()) -> frozenset[str]:
    """Return the tags of a turn's most frequent topics.

    The arguments of its tool calls tell them, or the entities of a local answer. If these tell none, the
    results of the calls do.
    """
    asked = [call["function"]["arguments"] for m in messages for call in m.get("tool_calls", ())]
    topics = _count_topics([*asked, *entity_ids])
    if not topics:
        topics = _count_topics(m["content"][:MAX_RESULT_CHARS] for m in messages if m["role"] == "tool")
    return frozenset(f"context:{topic}" for topic, _ in topics.most_common(MAX_TOPICS))


def _count_topics(texts: Iterable[str]) -> Counter[str]:
    domains = (found[1] or found[2] for text in texts for found in _NAME.finditer(text))
    return Counter(TOPICS[domain] for domain in domains if domain in TOPICS)
