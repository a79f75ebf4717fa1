"""The sentences for a turn that reached a budget."""

from typing import NamedTuple

DAILY_BUDGET = "max_cost_per_day_usd"
DEFAULT_LANGUAGE = "en"


class _Sentences(NamedTuple):
    """Sentences of one language: for a budget of the turn or of the day, and before a partial answer."""

    turn: str
    day: str
    known: str


_SENTENCES = {
    "en": _Sentences(
        "I stopped because this turn reached its budget ({budget}).",
        "Today's budget for the language model is used up ({budget}). I still answer what I understand "
        "without it.",
        "What I know so far: {known}",
    ),
    "de": _Sentences(
        "Ich habe aufgehört, weil diese Antwort ihre Grenze erreicht hat ({budget}).",
        "Das heutige Budget für das Sprachmodell ist aufgebraucht ({budget}). Was ich ohne es verstehe, "
        "beantworte ich weiterhin.",
        "Das weiß ich bisher: {known}",
    ),
    "es": _Sentences(
        "Me he detenido porque esta respuesta ha alcanzado su límite ({budget}).",
        "El presupuesto de hoy para el modelo de lenguaje se ha agotado ({budget}). Sigo respondiendo a lo "
        "que entiendo sin él.",
        "Esto es lo que sé hasta ahora: {known}",
    ),
    "fr": _Sentences(
        "Je me suis arrêté, car cette réponse a atteint sa limite ({budget}).",
        "Le budget du jour pour le modèle de langage est épuisé ({budget}). Je réponds encore à ce que je "
        "comprends sans lui.",
        "Voici ce que je sais : {known}",
    ),
    "it": _Sentences(
        "Mi sono fermato perché questa risposta ha raggiunto il suo limite ({budget}).",
        "Il budget di oggi per il modello linguistico è esaurito ({budget}). Rispondo ancora a ciò che "
        "capisco senza di esso.",
        "Ecco quello che so finora: {known}",
    ),
    "nl": _Sentences(
        "Ik ben gestopt omdat dit antwoord zijn limiet heeft bereikt ({budget}).",
        "Het budget van vandaag voor het taalmodel is op ({budget}). Wat ik zonder het model begrijp, "
        "beantwoord ik nog steeds.",
        "Dit weet ik tot nu toe: {known}",
    ),
}


def describe_stop(budget: str, known: list[str], language: str | None) -> str:
    """Return a sentence that names the reached budget, with what the model has said so far.

    `language` is a tag such as "de" or "de-AT". A language without sentences gets English.
    """
    tag = (language or "").lower().replace("_", "-").partition("-")[0]
    sentences = _SENTENCES.get(tag, _SENTENCES[DEFAULT_LANGUAGE])
    stopped = (sentences.day if budget == DAILY_BUDGET else sentences.turn).format(budget=budget)
    return " ".join([stopped, *(sentences.known.format(known=text) for text in known)])
