"""The sentences of the offline model, in English and in German."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sash.values.state_words import STATE_WORDS, StateWords

MAX_LISTED = 10
MAX_NAMED = 5
UNAVAILABLE = "unavailable"


@dataclass(frozen=True, slots=True)
class Phrases:
    """All sentences of the offline model in one language.

    `reason_rules` translate the reason why a tool did nothing: a pattern, and the sentence that replaces it.
    `is_brief` phrases say one sentence where others say two.
    """

    cannot_answer: str
    cannot_see_media: str
    help: str
    how_to_allow: str
    current_time: str
    weekdays: tuple[str, ...]
    weekday_length: int
    nothing_found: str
    unknown_name: str
    no_match: str
    closest_matches: str
    and_more: str
    is_healthy: str
    needs_attention: str
    is_unavailable: str
    has_no_value: str
    likely_causes: str
    recommendations: str
    also: str
    in_logbook: str
    ask_which: str
    ask_if_meant: str
    nothing_done: str
    none_unavailable: str
    list_unavailable: str
    no_low_battery: str
    low_batteries: str
    unknown_levels: str
    last_known_level: str
    no_entries: str
    entries: str
    noted_fact: str
    nothing_recalled: str
    lately: str
    speaker_names: dict[str, str]
    dry_run: str
    effect_not_seen: str
    effect_not_checked: str
    incidents: str
    state_words: StateWords
    reason_rules: tuple[tuple[re.Pattern[str], str], ...] = ()
    is_brief: bool = False

    def name_state(self, state: Any, device_class: str = "") -> str:
        """Return the name of a state in this language. A state without a name is returned as it is."""
        return self.state_words.name_state(str(state), device_class)

    def translate_reason(self, text: str) -> str:
        """Translate the reason why a tool did nothing. A reason without a rule stays as it is."""
        for pattern, translation in self.reason_rules:
            if found := pattern.search(text):
                return found.expand(translation)
        return text


ENGLISH = Phrases(
    cannot_answer=(
        "I cannot answer that without a language model, and none is configured. I can look up what the tools "
        "know, find what was said before (“what did I say about …?”), and keep facts (“remember that …”). To "
        "talk freely, configure a model and its key."
    ),
    cannot_see_media=(
        "I cannot look at images or listen to recordings without a language model, and none is configured."
    ),
    help=(
        "No language model is configured, so I understand plain sentences only. For example:\n"
        "- “Is the front door locked?”, “Which lights are on?”, “How warm is it in the bedroom?”\n"
        "- “Turn on the kitchen light”, “Undo that” (if actions are allowed)\n"
        "- “What is unavailable?”, “Which batteries are low?”, “What happened last night?”\n"
        "- “What is wrong with the bedroom light?”, “Were there any errors today?”\n"
        "- “Remember that …”, “What did I say about …?”\n"
        "To talk freely, configure a model and its key."
    ),
    how_to_allow=(
        "Turn on `allow_actuation` in the settings of the server (`SASH_ALLOW_ACTUATION=true`) and in the "
        "policy of the session, and add the service to `allowlisted_services`."
    ),
    current_time="It is {day}, {time}.",
    weekdays=("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"),
    weekday_length=3,
    nothing_found="I find nothing by that name in the house.",
    unknown_name="I cannot find “{}” in the house.",
    no_match="Nothing in the house matches {}.",
    closest_matches="The closest: {}.",
    and_more="and {} more",
    is_healthy="{} is fine",
    needs_attention="{} needs attention",
    is_unavailable="{} is not available",
    has_no_value="{} has no value",
    likely_causes="Likely causes: {}.",
    recommendations="What to do: {}.",
    also="Also: {}",
    in_logbook="In the logbook: {}.",
    ask_which="Which one do you mean: {}? Nothing was done.",
    ask_if_meant="Do you mean {}? Nothing was done. Please use that name.",
    nothing_done="Nothing was done.",
    none_unavailable="Nothing like that is unavailable.",
    list_unavailable="Not available: {}.",
    no_low_battery="No battery is low, as far as I know.",
    low_batteries="Low: {}.",
    unknown_levels="Level unknown at the moment: {}.",
    last_known_level="{}, last known level {}",
    no_entries="The logbook has nothing about that.",
    entries="{shown} of {total} entries in the logbook of the last {hours} hours:",
    noted_fact="I was asked to remember: {}",
    nothing_recalled="I find nothing about that in our conversation.",
    lately="lately",
    speaker_names={"user": "you", "assistant": "I"},
    dry_run="This is a dry run, and nothing was done. I would have called {}.",
    effect_not_seen="I tried, but the house does not show a change.",
    effect_not_checked="Done. I cannot check the effect.",
    incidents="{} incidents.",
    state_words=STATE_WORDS["en"],
    reason_rules=(
        (re.compile(r"^not done: the user said no$"), "OK, I will not do that."),
        (
            re.compile(r"^failed: the last action was (.{1,300}), which cannot be undone"),
            r"The last action was \1. It cannot be undone.",
        ),
        (re.compile(r"^not done: (I am not allowed .*)", re.S), r"\1"),
    ),
)

GERMAN = Phrases(
    cannot_answer=(
        "Das kann ich ohne Sprachmodell nicht beantworten, und es ist keines eingerichtet. Ich kann "
        "nachsehen, was die Werkzeuge wissen, finden, was früher gesagt wurde („Was habe ich über … "
        "gesagt?“), und mir etwas merken („Merk dir, dass …“). Für freie Gespräche: ein Modell und seinen "
        "Schlüssel einrichten."
    ),
    cannot_see_media=(
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
    how_to_allow=(
        "Schalte `allow_actuation` in den Einstellungen des Servers (`SASH_ALLOW_ACTUATION=true`) und in der "
        "Richtlinie der Sitzung ein, und nimm den Dienst in `allowlisted_services` auf."
    ),
    current_time="Es ist {day}, {time}.",
    weekdays=("Montag", "Dienstag", "Mittwoch", "Donnerstag", "Freitag", "Samstag", "Sonntag"),
    weekday_length=2,
    nothing_found="Im Haus finde ich nichts, das so heißt.",
    unknown_name="Im Haus finde ich „{}“ nicht.",
    no_match="Ich finde nichts, zu dem {} passt.",
    closest_matches="Am nächsten kommt: {}.",
    and_more="und {} weitere",
    is_healthy="{}: in Ordnung",
    needs_attention="{}: hier stimmt etwas nicht",
    is_unavailable="{}: nicht verfügbar",
    has_no_value="{}: kein Wert",
    likely_causes="Wahrscheinliche Ursachen: {}.",
    recommendations="Was zu tun ist: {}.",
    also="Außerdem: {}",
    in_logbook="Im Logbuch: {}.",
    ask_which="Was ist gemeint: {}? Es wurde nichts getan.",
    ask_if_meant="Ist {} gemeint? Es wurde nichts getan: bitte mit diesem Namen sagen.",
    nothing_done="Es wurde nichts getan.",
    none_unavailable="Davon ist alles verfügbar.",
    list_unavailable="Nicht verfügbar: {}.",
    no_low_battery="Von keiner Batterie ist bekannt, dass sie fast leer ist.",
    low_batteries="Fast leer: {}.",
    unknown_levels="Zurzeit ohne Stand: {}.",
    last_known_level="{}, zuletzt {}",
    no_entries="Dazu steht nichts im Logbuch.",
    entries="{shown} von {total} Einträgen im Logbuch der letzten {hours} Stunden:",
    noted_fact="Das sollte ich mir merken: {}",
    nothing_recalled="Dazu finde ich nichts in dem, was gesagt wurde.",
    lately="vor Kurzem",
    speaker_names={"user": "du", "assistant": "ich"},
    dry_run="Das ist ein Probelauf, und es wurde nichts getan. Aufgerufen hätte ich {}.",
    effect_not_seen="Ich habe es versucht, aber am Haus ist nicht zu sehen, dass es gewirkt hat.",
    effect_not_checked="Erledigt. Ob es gewirkt hat, kann ich nicht prüfen.",
    incidents="{} Vorfälle.",
    state_words=STATE_WORDS["de"],
    reason_rules=(
        (
            re.compile(r"failed: (\S+) has changed nothing, and there is nothing to undo"),
            r"\1 hat nichts geändert, und sonst gibt es in dieser Sitzung nichts rückgängig zu machen.",
        ),
        (
            re.compile(r"there is nothing to undo in this session"),
            "In dieser Sitzung gibt es nichts rückgängig zu machen.",
        ),
        (
            re.compile(r"the last action was (.{1,300}), which cannot be undone"),
            r"Die letzte Aktion war \1; sie lässt sich nicht rückgängig machen.",
        ),
        (
            re.compile(r"it is unknown whether the last action, (.{1,300}?), was done"),
            r"Niemand weiß, ob die letzte Aktion (\1) ausgeführt wurde.",
        ),
        (
            re.compile(r"failed: (.{1,300}?) has changed since .{0,600}Nothing was undone"),
            r"\1 hat sich seitdem geändert: Es wurde nichts rückgängig gemacht.",
        ),
        (
            re.compile(r"not done: I am not allowed to control devices"),
            "Ich darf keine Geräte steuern. Schalte dafür `allow_actuation` ein.",
        ),
        (re.compile(r"^not done: the user said no$"), "Gut, ich mache es nicht."),
        (re.compile(r"not done: (\S+) is on the denylist"), r"Nicht getan: \1 ist gesperrt."),
        (
            re.compile(r"not done: I am not allowed to use (\S+)\. "),
            r"Ich darf \1 nicht verwenden. Füge es dafür zu `allowlisted_services` hinzu.",
        ),
        (re.compile(r"^not done: (.*)"), r"Nicht getan: \1"),
        (re.compile(r"^failed: (.*)"), r"Fehlgeschlagen: \1"),
    ),
)

_language = re.compile(
    r"^(?:What the user prefers|The user who speaks now):\n(?:.+\n)*?language: (\w+)", re.M
)


WRITTEN_PHRASES = {"en": ENGLISH, "de": GERMAN}


def choose_phrases(messages: list[dict[str, Any]], known: Mapping[str, Phrases]) -> Phrases:
    """Return the phrases in the user's language, which the last such system message names.

    The default is English.
    """
    for message in reversed(messages):
        if message["role"] == "system" and (found := _language.search(str(message["content"]))):
            return known.get(found[1].lower(), known["en"])
    return known["en"]


def limit_list(items: list[str], limit: int, phrases: Phrases) -> list[str]:
    """Return the first `limit` items. If there are more, the last item says how many are left out."""
    if len(items) <= limit:
        return items
    return [*items[:limit], phrases.and_more.format(len(items) - limit)]
