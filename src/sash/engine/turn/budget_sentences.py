"""The sentences for a turn that reached a budget."""

from typing import NamedTuple

DEFAULT_LANGUAGE = "en"


class _Sentences(NamedTuple):
    """Sentences of one language: why a turn was stopped, and before a partial answer.

    No sentence names a setting: the field `stopped_by` of the response does.
    """

    steps: str
    tokens: str
    time: str
    cost: str
    day: str
    known: str


_SENTENCES = {
    "en": _Sentences(
        "I stopped because this took too many steps.",
        "I stopped because this was too much text for one answer.",
        "I stopped because this took too long.",
        "I stopped because this would cost more than one answer may.",
        "Today's budget for the language model is used up. I still answer what I understand without it.",
        "What I know so far: {known}",
    ),
    "de": _Sentences(
        "Ich habe aufgehört, weil das zu viele Schritte gebraucht hat.",
        "Ich habe aufgehört, weil das zu viel Text für eine Antwort war.",
        "Ich habe aufgehört, weil das zu lange gedauert hat.",
        "Ich habe aufgehört, weil das mehr kosten würde, als eine Antwort darf.",
        "Das heutige Budget für das Sprachmodell ist aufgebraucht. Was ich ohne es verstehe, beantworte ich "
        "weiterhin.",
        "Das weiß ich bisher: {known}",
    ),
    "es": _Sentences(
        "Me he detenido porque hacían falta demasiados pasos.",
        "Me he detenido porque era demasiado texto para una respuesta.",
        "Me he detenido porque tardaba demasiado.",
        "Me he detenido porque costaría más de lo que puede costar una respuesta.",
        "El presupuesto de hoy para el modelo de lenguaje se ha agotado. Sigo respondiendo a lo que entiendo "
        "sin él.",
        "Esto es lo que sé hasta ahora: {known}",
    ),
    "fr": _Sentences(
        "Je me suis arrêté, car il fallait trop d'étapes.",
        "Je me suis arrêté, car c'était trop de texte pour une réponse.",
        "Je me suis arrêté, car cela prenait trop de temps.",
        "Je me suis arrêté, car cela coûterait plus qu'une réponse ne le doit.",
        "Le budget du jour pour le modèle de langage est épuisé. Je réponds encore à ce que je comprends "
        "sans lui.",
        "Voici ce que je sais : {known}",
    ),
    "it": _Sentences(
        "Mi sono fermato perché servivano troppi passaggi.",
        "Mi sono fermato perché era troppo testo per una risposta.",
        "Mi sono fermato perché ci voleva troppo tempo.",
        "Mi sono fermato perché costerebbe più di quanto può costare una risposta.",
        "Il budget di oggi per il modello linguistico è esaurito. Rispondo ancora a ciò che capisco senza di "
        "esso.",
        "Ecco quello che so finora: {known}",
    ),
    "nl": _Sentences(
        "Ik ben gestopt omdat dit te veel stappen kostte.",
        "Ik ben gestopt omdat dit te veel tekst was voor één antwoord.",
        "Ik ben gestopt omdat dit te lang duurde.",
        "Ik ben gestopt omdat dit meer zou kosten dan één antwoord mag.",
        "Het budget van vandaag voor het taalmodel is op. Wat ik zonder het model begrijp, beantwoord ik nog "
        "steeds.",
        "Dit weet ik tot nu toe: {known}",
    ),
}
_KEYS = {
    "max_tokens_per_turn": "tokens",
    "max_duration_ms": "time",
    "max_cost_per_turn_usd": "cost",
    "max_cost_per_day_usd": "day",
}


def describe_stop(budget: str, known: list[str], language: str | None) -> str:
    """Return a sentence that says why a turn was stopped, with what the model has said so far.

    `budget` is the name of the reached budget. `language` is a tag such as "de" or "de-AT". A language
    without sentences gets English.
    """
    tag = (language or "").lower().replace("_", "-").partition("-")[0]
    sentences = _SENTENCES.get(tag, _SENTENCES[DEFAULT_LANGUAGE])
    stopped = getattr(sentences, _KEYS.get(budget, "steps"))
    return " ".join([stopped, *(sentences.known.format(known=text) for text in known)])
