"""The spoken question for an approval: "Unlock Front door lock?", in the user's language."""

from collections.abc import Sequence
from typing import Any

from sash.values.steps import ApprovalRequested

DEFAULT_LANGUAGE = "en"

# `{verb}` is one of the verbs below, and `{names}` the names of the entities.
_QUESTIONS = {
    "en": "{verb} {names}?",
    "de": "Soll ich {names} {verb}?",
    "es": "¿Debo {verb} {names}?",
    "fr": "Dois-je {verb} {names} ?",
    "it": "Devo {verb} {names}?",
    "nl": "Zal ik {names} {verb}?",
}
# For a service without a verb, such as one of a custom integration.
_GENERAL_QUESTIONS = {
    "en": "Shall I do this: {action}?",
    "de": "Soll ich das tun: {action}?",
    "es": "¿Debo hacer esto: {action}?",
    "fr": "Dois-je faire ceci : {action} ?",
    "it": "Devo fare questo: {action}?",
    "nl": "Zal ik dit doen: {action}?",
}
_LANGUAGES = ("en", "de", "es", "fr", "it", "nl")
_VERBS = {
    "lock": ("Lock", "abschließen", "cerrar con llave", "verrouiller", "chiudere a chiave", "op slot doen"),
    "unlock": ("Unlock", "aufschließen", "desbloquear", "déverrouiller", "sbloccare", "van het slot doen"),
    "open": ("Open", "öffnen", "abrir", "ouvrir", "aprire", "openen"),
    "close": ("Close", "schließen", "cerrar", "fermer", "chiudere", "sluiten"),
    "stop": ("Stop", "anhalten", "detener", "arrêter", "fermare", "stoppen"),
    "arm": ("Arm", "scharf schalten", "armar", "armer", "inserire", "inschakelen"),
    "disarm": ("Disarm", "unscharf schalten", "desarmar", "désarmer", "disinserire", "uitschakelen"),
    "turn_on": ("Turn on", "einschalten", "encender", "allumer", "accendere", "aanzetten"),
    "turn_off": ("Turn off", "ausschalten", "apagar", "éteindre", "spegnere", "uitzetten"),
}


def write_question(calls: Sequence[ApprovalRequested], *languages: str | None) -> str:
    """Return a question that asks for the approval of some calls, and ends in a question mark.

    It is in the first of the languages that has a question here, or else in English. A language is a tag such
    as "de" or "de-AT".
    """
    tags = [tag.lower().replace("_", "-").partition("-")[0] for tag in languages if tag]
    language = next((tag for tag in tags if tag in _LANGUAGES), DEFAULT_LANGUAGE)
    return " ".join(dict.fromkeys(_write(call, language) for call in calls))


def _write(call: ApprovalRequested, language: str) -> str:
    would: dict[str, Any] = call.would if isinstance(call.would, dict) else {}
    domain, _, service = str(would.get("service") or "").partition(".")
    names = ", ".join(map(_find_name, would.get("entities") or ()))
    verb = _find_verb(domain, service)
    if verb is None or not names:
        words = f"{domain} {service}".replace("_", " ").strip() or call.name.replace("_", " ")
        return _GENERAL_QUESTIONS[language].format(action=f"{words} ({names})" if names else words)
    translated = _VERBS[verb][_LANGUAGES.index(language)]
    return _QUESTIONS[language].format(verb=translated, names=names)


def _find_verb(domain: str, service: str) -> str | None:
    """Return the verb of a service, such as "open" for `cover.open_cover`; None if it has no verb here."""
    if domain == "alarm_control_panel":
        return "disarm" if service == "alarm_disarm" else "arm" if service.startswith("alarm_arm") else None
    verb = service.removesuffix(f"_{domain}")
    return verb if verb in _VERBS else None


def _find_name(entity: Any) -> str:
    return str(entity.get("name") or entity.get("entity_id")) if isinstance(entity, dict) else str(entity)
