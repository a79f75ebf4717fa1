"""The domains of the things that a command means if it names none of them."""

from collections.abc import Iterable, Mapping

from sash.intents.acting.act import Act
from sash.intents.home_words import HomeWords
from sash.intents.sentence.clause import Word

# "Turn everything off" means things of these domains.
EVERYTHING = frozenset({"light", "switch", "fan", "media_player", "input_boolean"})
EVERYTHING_BY_ACT: Mapping[str, frozenset[str]] = {
    **dict.fromkeys(("open", "close", "up", "down"), frozenset({"cover", "valve"})),
    **dict.fromkeys(("lock", "unlock"), frozenset({"lock"})),
    **dict.fromkeys(("mute", "unmute", "pause", "play", "louder", "quieter"), frozenset({"media_player"})),
    **dict.fromkeys(("stronger", "weaker"), frozenset({"media_player"})),
}
# Without a name, these acts mean things of these domains.
DEFAULT_DOMAINS: Mapping[str, tuple[str, ...]] = {
    "warmer": ("climate",),
    "colder": ("climate",),
    "heat": ("climate",),
    "cool": ("climate",),
    "brighter": ("light",),
    "darker": ("light",),
    "louder": ("media_player",),
    "quieter": ("media_player",),
    "stronger": ("media_player",),
    "weaker": ("media_player",),
    "next": ("media_player",),
    "previous": ("media_player",),
    "pause": ("media_player",),
    "play": ("media_player",),
    "mute": ("media_player",),
    "unmute": ("media_player",),
    "arm": ("alarm_control_panel",),
    "disarm": ("alarm_control_panel",),
    "dock": ("vacuum", "lawn_mower"),
    "start": ("vacuum", "lawn_mower"),
    "clean": ("vacuum", "lawn_mower"),
    "lock": ("lock",),
    "unlock": ("lock",),
}
# A property alone means things of these domains: "set the brightness to 50 percent".
PROPERTY_DOMAINS: Mapping[str, tuple[str, ...]] = {
    "brightness": ("light",),
    "colour": ("light",),
    "temperature": ("climate",),
    "volume": ("media_player",),
    "position": ("cover",),
    "speed": ("fan",),
    "humidity": ("humidifier",),
}
_PLAYER_ACTS = (
    *("louder", "quieter", "stronger", "weaker", "next", "previous", "pause", "play", "mute", "unmute"),
)
# A place alone means its lights: "turn off the kitchen".
_LIGHT_ACTS = ("on", "off", "toggle", "brighter", "darker")
# "Set the bedroom to 21" is about warmth.
_ROOM_DEGREES = range(10, 31)


def choose_domains(words: Iterable[Word], act: Act, home: HomeWords) -> frozenset[str] | None:
    """Return the domains that a command about a place alone means; None for no limit."""
    are_places = all(not word.entity_ids and home.is_place(word.keys) for word in words)
    if not are_places:
        return None
    named = [domain for name in act.properties for domain in PROPERTY_DOMAINS.get(name, ())]
    is_degrees = act.amount.unit == "degrees" or (is_room_warmth(act) and not named)
    if is_degrees or act.has("warmer", "colder", "heat", "cool"):
        return frozenset({"climate"})
    if named:
        return frozenset(named)
    if act.has("clean"):
        return frozenset({"vacuum", "lawn_mower"})
    if act.has(*_PLAYER_ACTS):
        return frozenset({"media_player"})
    if act.amount.colour or act.has(*_LIGHT_ACTS) or act.percent is not None:
        return frozenset({"light"})
    return None


def is_room_warmth(act: Act) -> bool:
    """Return whether a number without an act is a temperature of a room: "set it to 21"."""
    return act.amount.unit is None and act.amount.value in _ROOM_DEGREES and not act.do


def is_property(word: Word) -> bool:
    """Return whether a word names what is set or measured, such as "brightness", and no thing."""
    return word.has("property") and not word.entity_ids
