"""The sentences of the offline model inside Home Assistant, where they are mostly spoken aloud.

They are short, and name the settings as Home Assistant shows them.
"""

import re
from dataclasses import replace

from sash.models.offline.phrases import ENGLISH, GERMAN, Phrases

_SPOKEN_ENGLISH = replace(
    ENGLISH,
    cannot_answer="I did not understand that.",
    help=ENGLISH.help.rpartition("\n")[0],
    how_to_allow=(
        "Open the settings of this agent in Home Assistant. Turn on “Control devices”, and choose under "
        "“Actions” what I may control."
    ),
    is_brief=True,
    reason_rules=(
        (
            re.compile(r"^not done: I am not allowed to control devices"),
            "I am not allowed to control devices. You can change this in the settings of this agent.",
        ),
        (
            re.compile(r"^not done: I am not allowed to use (\S+)\. "),
            r"I am not allowed to use \1. You can change this in the settings of this agent.",
        ),
        *ENGLISH.reason_rules,
    ),
)
_SPOKEN_GERMAN = replace(
    GERMAN,
    cannot_answer="Das habe ich nicht verstanden.",
    help=GERMAN.help.rpartition("\n")[0],
    how_to_allow=(
        "Öffne in Home Assistant die Einstellungen dieses Agenten. Schalte „Geräte steuern“ ein, und wähle "
        "unter „Aktionen“, was ich steuern darf."
    ),
    is_brief=True,
    reason_rules=(
        (
            re.compile(r"^not done: I am not allowed to control devices"),
            "Ich darf keine Geräte steuern. Das kannst du in den Einstellungen dieses Agenten ändern.",
        ),
        (
            re.compile(r"^not done: I am not allowed to use (\S+)\. "),
            r"Ich darf \1 nicht verwenden. Das kannst du in den Einstellungen dieses Agenten ändern.",
        ),
        *GERMAN.reason_rules,
    ),
)
# The most frequent sentence of all is known in more languages.
SPOKEN_PHRASES: dict[str, Phrases] = {
    "en": _SPOKEN_ENGLISH,
    "de": _SPOKEN_GERMAN,
    "es": replace(_SPOKEN_ENGLISH, cannot_answer="No lo he entendido."),
    "fr": replace(_SPOKEN_ENGLISH, cannot_answer="Je n'ai pas compris."),
    "it": replace(_SPOKEN_ENGLISH, cannot_answer="Non ho capito."),
    "nl": replace(_SPOKEN_ENGLISH, cannot_answer="Dat heb ik niet begrepen."),
}
