"""The words of the model that is none: what it says, in English and in German, and what states are called."""

import re
from dataclasses import dataclass, field
from typing import Any

MAX_LISTED = 10
MAX_NAMED = 5
UNAVAILABLE = "unavailable"


@dataclass(frozen=True, slots=True)
class Speech:
    """What is said in one language; `either` are the states on and off by the class of a sensor."""

    cannot: str
    no_images: str
    help: str
    now: str
    weekdays: tuple[str, ...]
    short_day: int
    nothing_so_called: str
    nothing_so: str
    nothing_fits: str
    nearest: str
    more: str
    fine: str
    not_fine: str
    away: str
    no_value: str
    causes: str
    to_do: str
    also: str
    logged: str
    which: str
    only_one: str
    not_done: str
    none_away: str
    all_away: str
    none_low: str
    low: str
    unknown_level: str
    last_level: str
    nothing_happened: str
    happened: str
    noted: str
    nothing_said: str
    lately: str
    speakers: dict[str, str]
    dry_run: str
    not_seen: str
    unseen: str
    incidents: str
    states: dict[str, str] = field(default_factory=dict)
    either: dict[str, tuple[str, str]] = field(default_factory=dict)
    reasons: tuple[tuple[str, str], ...] = ()

    def state(self, state: Any, device_class: str = "") -> str:
        """Return what a state is called."""
        if state in ("on", "off") and device_class in self.either:
            return self.either[device_class][state == "off"]
        return self.states.get(str(state), str(state))

    def reason(self, text: str) -> str:
        """Return why something was not done, in this language if it is known there."""
        for pattern, said in self.reasons:
            if found := re.search(pattern, text):
                return found.expand(said)
        return text


_DETECTED = ("carbon_monoxide", "gas", "heat", "light", "motion", "occupancy", "smoke", "sound", "vibration")
_OPENED = ("door", "garage_door", "opening", "window")

ENGLISH = Speech(
    cannot=(
        "I cannot answer that without a language model, and none is configured. I can look up what the tools "
        "know, find what was said before (“what did I say about …?”), and keep facts (“remember that …”). To "
        "talk freely, configure a model and its key."
    ),
    no_images=(
        "I cannot look at images or listen to recordings without a language model, and none is configured."
    ),
    help=(
        "No language model is configured, so that I understand plain sentences only. For example:\n"
        "- “Is the front door locked?”, “Which lights are on?”, “How warm is it in the bedroom?”\n"
        "- “Turn on the kitchen light”, “Undo that” (if actions are allowed)\n"
        "- “What is unavailable?”, “Which batteries are low?”, “What happened last night?”\n"
        "- “What is wrong with the bedroom light?”, “Were there any errors today?”\n"
        "- “Remember that …”, “What did I say about …?”\n"
        "To talk freely, configure a model and its key."
    ),
    now="It is {day}, {time}.",
    weekdays=("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"),
    short_day=3,
    nothing_so_called="I find nothing by that name in the house.",
    nothing_so="I know no {}.",
    nothing_fits="I find nothing that fits {}.",
    nearest="The nearest: {}.",
    more="and {} more",
    fine="{} is fine",
    not_fine="{} needs attention",
    away="{} is not available",
    no_value="{} has no value",
    causes="Likely causes: {}.",
    to_do="What to do: {}.",
    also="Also: {}",
    logged="In the logbook: {}.",
    which="Which one do you mean: {}? Nothing was done.",
    only_one="Do you mean {}? Nothing was done: please say it with that name.",
    not_done="Nothing was done.",
    none_away="Nothing like that is unavailable.",
    all_away="Not available: {}.",
    none_low="No battery is known to be low.",
    low="Low: {}.",
    unknown_level="Without a level just now: {}.",
    last_level="{}, which was {} last",
    nothing_happened="The logbook has nothing about that.",
    happened="{shown} of {total} entries in the logbook of the last {hours} hours:",
    noted="I was asked to remember: {}",
    nothing_said="I find nothing about that in what was said before.",
    lately="lately",
    speakers={"user": "you", "assistant": "I"},
    dry_run="This is a dry run, and nothing was done. I would have called {}.",
    not_seen="I have tried, but the house does not show that it has worked.",
    unseen="It was done; nobody can see whether it has worked.",
    incidents="{} incidents.",
    states={UNAVAILABLE: "not available", "not_home": "away"},
    either={
        **dict.fromkeys(_DETECTED, ("detected", "clear")),
        **dict.fromkeys(_OPENED, ("open", "closed")),
        "battery": ("low", "normal"),
        "battery_charging": ("charging", "not charging"),
        "cold": ("cold", "normal"),
        "connectivity": ("connected", "disconnected"),
        "lock": ("unlocked", "locked"),
        "moisture": ("wet", "dry"),
        "plug": ("plugged in", "unplugged"),
        "presence": ("home", "away"),
        "problem": ("problem", "no problem"),
        "running": ("running", "not running"),
        "safety": ("unsafe", "safe"),
        "tamper": ("tampering detected", "clear"),
        "update": ("update available", "up to date"),
    },
)

GERMAN = Speech(
    cannot=(
        "Das kann ich ohne Sprachmodell nicht beantworten, und es ist keines eingerichtet. Ich kann "
        "nachsehen, was die Werkzeuge wissen, finden, was früher gesagt wurde („Was habe ich über … "
        "gesagt?“), und mir etwas merken („Merk dir, dass …“). Für freie Gespräche: ein Modell und seinen "
        "Schlüssel einrichten."
    ),
    no_images=(
        "Bilder ansehen oder Aufnahmen anhören kann ich ohne Sprachmodell nicht, und es ist keines "
        "eingerichtet."
    ),
    help=(
        "Es ist kein Sprachmodell eingerichtet: Ich verstehe nur einfache Sätze. Zum Beispiel:\n"
        "- „Ist die Haustür abgeschlossen?“, „Welche Lichter sind an?“, „Wie warm ist es im Schlafzimmer?“\n"
        "- „Schalte das Licht in der Küche ein“, „Mach das rückgängig“ (wenn Aktionen erlaubt sind)\n"
        "- „Was ist nicht verfügbar?“, „Welche Batterien sind leer?“, „Was ist letzte Nacht passiert?“\n"
        "- „Was ist mit dem Schlafzimmerlicht los?“, „Gab es heute Fehler?“\n"
        "- „Merk dir, dass …“, „Was habe ich über … gesagt?“\n"
        "Für freie Gespräche: ein Modell und seinen Schlüssel einrichten."
    ),
    now="Es ist {day}, {time}.",
    weekdays=("Montag", "Dienstag", "Mittwoch", "Donnerstag", "Freitag", "Samstag", "Sonntag"),
    short_day=2,
    nothing_so_called="Im Haus finde ich nichts, das so heißt.",
    nothing_so="Das kenne ich nicht: {}.",
    nothing_fits="Ich finde nichts, zu dem {} passt.",
    nearest="Am nächsten kommt: {}.",
    more="und {} weitere",
    fine="{}: in Ordnung",
    not_fine="{}: hier stimmt etwas nicht",
    away="{}: nicht verfügbar",
    no_value="{}: kein Wert",
    causes="Wahrscheinliche Ursachen: {}.",
    to_do="Was zu tun ist: {}.",
    also="Außerdem: {}",
    logged="Im Logbuch: {}.",
    which="Was ist gemeint: {}? Es wurde nichts getan.",
    only_one="Ist {} gemeint? Es wurde nichts getan: bitte mit diesem Namen sagen.",
    not_done="Es wurde nichts getan.",
    none_away="Davon ist alles verfügbar.",
    all_away="Nicht verfügbar: {}.",
    none_low="Von keiner Batterie ist bekannt, dass sie fast leer ist.",
    low="Fast leer: {}.",
    unknown_level="Zurzeit ohne Stand: {}.",
    last_level="{}, zuletzt {}",
    nothing_happened="Dazu steht nichts im Logbuch.",
    happened="{shown} von {total} Einträgen im Logbuch der letzten {hours} Stunden:",
    noted="Das sollte ich mir merken: {}",
    nothing_said="Dazu finde ich nichts in dem, was gesagt wurde.",
    lately="vor Kurzem",
    speakers={"user": "du", "assistant": "ich"},
    dry_run="Das ist ein Probelauf, und es wurde nichts getan. Aufgerufen hätte ich {}.",
    not_seen="Ich habe es versucht, aber am Haus ist nicht zu sehen, dass es gewirkt hat.",
    unseen="Es wurde ausgeführt; ob es gewirkt hat, kann niemand sehen.",
    incidents="{} Vorfälle.",
    states={
        UNAVAILABLE: "nicht verfügbar",
        "unknown": "unbekannt",
        "on": "an",
        "off": "aus",
        "open": "offen",
        "closed": "geschlossen",
        "opening": "öffnet sich",
        "closing": "schließt sich",
        "locked": "abgeschlossen",
        "unlocked": "nicht abgeschlossen",
        "home": "zu Hause",
        "not_home": "nicht da",
        "playing": "spielt",
        "paused": "angehalten",
        "idle": "untätig",
        "cleaning": "saugt",
        "docked": "in der Station",
        "heat": "heizt",
        "cool": "kühlt",
        "disarmed": "unscharf",
    },
    either={
        **dict.fromkeys(_DETECTED, ("erkannt", "nichts erkannt")),
        **dict.fromkeys(_OPENED, ("offen", "geschlossen")),
        "battery": ("schwach", "normal"),
        "battery_charging": ("lädt", "lädt nicht"),
        "cold": ("kalt", "normal"),
        "connectivity": ("verbunden", "getrennt"),
        "lock": ("nicht abgeschlossen", "abgeschlossen"),
        "moisture": ("nass", "trocken"),
        "plug": ("eingesteckt", "ausgesteckt"),
        "presence": ("zu Hause", "nicht da"),
        "problem": ("Problem", "kein Problem"),
        "running": ("läuft", "läuft nicht"),
        "safety": ("unsicher", "sicher"),
        "tamper": ("Manipulation erkannt", "nichts erkannt"),
        "update": ("Aktualisierung verfügbar", "aktuell"),
    },
    reasons=(
        (
            r"failed: (\S+) has changed nothing, and there is nothing to undo",
            r"\1 hat nichts geändert, und sonst gibt es in dieser Sitzung nichts rückgängig zu machen.",
        ),
        (
            r"there is nothing to undo in this session",
            "In dieser Sitzung gibt es nichts rückgängig zu machen.",
        ),
        (
            r"the last action was (.+), which cannot be undone",
            r"Die letzte Aktion war \1; sie lässt sich nicht rückgängig machen.",
        ),
        (
            r"it is unknown whether the last action, (.+?), was done",
            r"Niemand weiß, ob die letzte Aktion (\1) ausgeführt wurde.",
        ),
        (
            r"failed: (.+?) has changed since: .*Nothing was undone",
            r"\1 hat sich seitdem geändert: Es wurde nichts rückgängig gemacht.",
        ),
        (r"not done: actions are off", "Nicht getan: In dieser Sitzung sind Aktionen nicht erlaubt."),
        (r"not done: (\S+) is on the denylist", r"Nicht getan: \1 ist gesperrt."),
        (
            r"not done: (\S+) is not on the session's allowlist",
            r"Nicht getan: \1 ist in dieser Sitzung nicht erlaubt.",
        ),
        (r"^not done: (.*)", r"Nicht getan: \1"),
        (r"^failed: (.*)", r"Fehlgeschlagen: \1"),
    ),
)

_preferred = re.compile(r"^What the user prefers:\n(?:.+\n)*?language: (\w+)", re.M)


def speech(messages: list[dict[str, Any]]) -> Speech:
    """Return the words for what the user prefers; English if that is nothing, or has no words here."""
    for message in messages:
        if message["role"] == "system" and (found := _preferred.search(str(message["content"]))):
            return GERMAN if found[1].lower() == "de" else ENGLISH
    return ENGLISH


def listed(items: list[str], most: int, said: Speech) -> list[str]:
    """Return the first of many, and how many more there are."""
    return [*items[:most], *([said.more.format(len(items) - most)] if len(items) > most else [])]
