"""The words of notifications, in the languages of the integration."""

from typing import NamedTuple

DEFAULT_LANGUAGE = "en"


class NotificationTexts(NamedTuple):
    """The words of one language. `how_to_answer` has the id of the turn."""

    yes: str
    no: str
    how_to_answer: str


_TEXTS = {
    "en": NotificationTexts(
        "Yes",
        "No",
        "Answer on the page “Sash” in the sidebar. Or run the action `sash.approve` with `continuation_id: "
        "{turn_id}`, and `approved: true` or `false`.",
    ),
    "de": NotificationTexts(
        "Ja",
        "Nein",
        "Antworte auf der Seite „Sash“ in der Seitenleiste. Oder führe die Aktion `sash.approve` mit "
        "`continuation_id: {turn_id}` und `approved: true` oder `false` aus.",
    ),
    "es": NotificationTexts(
        "Sí",
        "No",
        "Responde en la página «Sash» de la barra lateral. O ejecuta la acción `sash.approve` con "
        "`continuation_id: {turn_id}` y `approved: true` o `false`.",
    ),
    "fr": NotificationTexts(
        "Oui",
        "Non",
        "Répondez sur la page « Sash » de la barre latérale. Ou exécutez l'action `sash.approve` avec "
        "`continuation_id: {turn_id}` et `approved: true` ou `false`.",
    ),
    "it": NotificationTexts(
        "Sì",
        "No",
        "Rispondi nella pagina “Sash” della barra laterale. Oppure esegui l'azione `sash.approve` con "
        "`continuation_id: {turn_id}` e `approved: true` o `false`.",
    ),
    "nl": NotificationTexts(
        "Ja",
        "Nee",
        "Antwoord op de pagina „Sash” in de zijbalk. Of voer de actie `sash.approve` uit met "
        "`continuation_id: {turn_id}` en `approved: true` of `false`.",
    ),
}


def find_texts(*languages: str | None) -> NotificationTexts:
    """Return the words in the first of the languages that has them, or else in English."""
    tags = [tag.lower().partition("-")[0] for tag in languages if tag]
    return _TEXTS[next((tag for tag in tags if tag in _TEXTS), DEFAULT_LANGUAGE)]
