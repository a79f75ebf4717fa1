"""The sentences of the offline model, in six languages."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

_LANGUAGE_PATTERN = re.compile(
    r"^(?:What the user prefers|The user who speaks now):\n(?:.+\n)*?language: (\w+)", re.M
)


@dataclass(frozen=True, slots=True)
class Phrases:
    """All sentences of the offline model in one language.

    `home_hint` and `hint` follow `not_understood`: examples that work with a home and without one.
    """

    not_understood: str
    home_hint: str
    hint: str
    cannot_see_media: str
    denied: str
    not_allowed: str
    not_done: str
    failed: str
    dry_run: str
    done: str
    unchecked: str
    effect_not_seen: str


PHRASES = {
    "en": Phrases(
        not_understood="I did not understand that.",
        home_hint="Try “which lights are on?” or “turn off all lights”, or ask “what can you do?”",
        hint="Try “what time is it?” or “remember that …”, or ask “what can you do?”",
        cannot_see_media="I cannot look at images or listen to recordings.",
        denied="OK, I will not do that.",
        not_allowed="I am not allowed to do that. You can allow it in my settings.",
        not_done="I did not do that.",
        failed="I tried, but it did not work.",
        dry_run="This is only a trial run, so I have changed nothing.",
        done="Done.",
        unchecked="Done. I cannot see the effect myself.",
        effect_not_seen="I tried, but I do not see the effect yet.",
    ),
    "de": Phrases(
        not_understood="Das habe ich nicht verstanden.",
        home_hint="Sag „Welche Lichter sind an?“ oder „Mach alle Lichter aus“, oder frag „Was kannst du?“",
        hint="Sag „Wie spät ist es?“ oder „Merk dir, dass …“, oder frag „Was kannst du?“",
        cannot_see_media="Bilder ansehen oder Aufnahmen anhören kann ich nicht.",
        denied="Gut, ich mache es nicht.",
        not_allowed="Das darf ich nicht. Du kannst es in meinen Einstellungen erlauben.",
        not_done="Das habe ich nicht getan.",
        failed="Ich habe es versucht, aber es hat nicht geklappt.",
        dry_run="Das ist nur ein Probelauf, ich habe nichts geändert.",
        done="Erledigt.",
        unchecked="Erledigt. Ob es gewirkt hat, sehe ich nicht.",
        effect_not_seen="Ich habe es versucht, sehe aber noch keine Wirkung.",
    ),
    "fr": Phrases(
        not_understood="Je n'ai pas compris.",
        home_hint="Essaie « quelles lumières sont allumées ? » ou « éteins toutes les lumières ».",
        hint="Essaie « quelle heure est-il ? » ou « souviens-toi que … ».",
        cannot_see_media="Je ne peux ni regarder des images ni écouter des enregistrements.",
        denied="D'accord, je ne le fais pas.",
        not_allowed="Je n'ai pas le droit de le faire. Tu peux l'autoriser dans mes réglages.",
        not_done="Je ne l'ai pas fait.",
        failed="J'ai essayé, mais cela n'a pas marché.",
        dry_run="C'est seulement un essai : je n'ai rien changé.",
        done="C'est fait.",
        unchecked="C'est fait. Je ne vois pas l'effet moi-même.",
        effect_not_seen="J'ai essayé, mais je ne vois pas encore l'effet.",
    ),
    "es": Phrases(
        not_understood="No lo he entendido.",
        home_hint="Prueba «¿qué luces están encendidas?» o «apaga todas las luces».",
        hint="Prueba «¿qué hora es?» o «recuerda que …».",
        cannot_see_media="No puedo ver imágenes ni escuchar grabaciones.",
        denied="De acuerdo, no lo hago.",
        not_allowed="No tengo permiso para hacerlo. Puedes darlo en mis ajustes.",
        not_done="No lo he hecho.",
        failed="Lo he intentado, pero no ha funcionado.",
        dry_run="Es solo una prueba: no he cambiado nada.",
        done="Hecho.",
        unchecked="Hecho. No puedo ver el efecto.",
        effect_not_seen="Lo he intentado, pero todavía no veo el efecto.",
    ),
    "it": Phrases(
        not_understood="Non ho capito.",
        home_hint="Prova «quali luci sono accese?» o «spegni tutte le luci».",
        hint="Prova «che ore sono?» o «ricorda che …».",
        cannot_see_media="Non posso guardare immagini né ascoltare registrazioni.",
        denied="Va bene, non lo faccio.",
        not_allowed="Non ho il permesso di farlo. Puoi darlo nelle mie impostazioni.",
        not_done="Non l'ho fatto.",
        failed="Ho provato, ma non ha funzionato.",
        dry_run="È solo una prova: non ho cambiato nulla.",
        done="Fatto.",
        unchecked="Fatto. Non posso vedere l'effetto.",
        effect_not_seen="Ho provato, ma non vedo ancora l'effetto.",
    ),
    "nl": Phrases(
        not_understood="Dat heb ik niet begrepen.",
        home_hint="Probeer „welke lampen zijn aan?” of „doe alle lampen uit”, of vraag „wat kun je?”",
        hint="Probeer „hoe laat is het?” of „onthoud dat …”, of vraag „wat kun je?”",
        cannot_see_media="Ik kan geen beelden bekijken of opnames beluisteren.",
        denied="Goed, ik doe het niet.",
        not_allowed="Dat mag ik niet doen. Je kunt het in mijn instellingen toestaan.",
        not_done="Dat heb ik niet gedaan.",
        failed="Ik heb het geprobeerd, maar het is niet gelukt.",
        dry_run="Dit is alleen een proef: ik heb niets veranderd.",
        done="Klaar.",
        unchecked="Klaar. Of het werkt, kan ik zelf niet zien.",
        effect_not_seen="Ik heb het geprobeerd, maar ik zie nog geen effect.",
    ),
}


def choose_phrases(messages: Sequence[dict[str, Any]]) -> Phrases:
    """Return the phrases in the user's language, which the last such system message names.

    The default is English.
    """
    for message in reversed(messages):
        found = _LANGUAGE_PATTERN.search(str(message["content"])) if message["role"] == "system" else None
        if found:
            return PHRASES.get(found[1].lower(), PHRASES["en"])
    return PHRASES["en"]
