"""The words of approval questions in six languages: what an action does, as the middle of a sentence."""

from typing import NamedTuple

LANGUAGES = ("en", "de", "es", "fr", "it", "nl")


class QuestionForms(NamedTuple):
    """How a language joins phrases to a question.

    `within` joins a script with its effects. `details` stands after an action that has no phrase of its own.
    """

    question: str
    conjunction: str
    within: str
    others: str
    details: str = " ({details})"


FORMS: dict[str, QuestionForms] = {
    "en": QuestionForms("{phrases}?", "and", "{phrase}, which will {effects}", "{count} others"),
    "de": QuestionForms("Soll ich {phrases}?", "und", "{phrase} und dabei {effects}", "{count} weitere"),
    "es": QuestionForms("¿Quieres {phrases}?", "y", "{phrase} y con ello {effects}", "{count} más"),
    "fr": QuestionForms("Dois-je {phrases} ?", "et", "{phrase} et ainsi {effects}", "{count} autres"),
    "it": QuestionForms("Devo {phrases}?", "e", "{phrase} e così {effects}", "altri {count}"),
    "nl": QuestionForms("Zal ik {phrases}?", "en", "{phrase} en daarbij {effects}", "{count} andere"),
}

# `{names}` are the names of the entities, and `{value}` is the argument that matters.
_PHRASES = {
    "lock": (
        "lock {names}",
        "{names} abschließen",
        "cerrar con llave {names}",
        "verrouiller {names}",
        "chiudere a chiave {names}",
        "{names} op slot doen",
    ),
    "unlock": (
        "unlock {names}",
        "{names} aufschließen",
        "desbloquear {names}",
        "déverrouiller {names}",
        "sbloccare {names}",
        "{names} van het slot doen",
    ),
    "open": (
        "open {names}",
        "{names} öffnen",
        "abrir {names}",
        "ouvrir {names}",
        "aprire {names}",
        "{names} openen",
    ),
    "close": (
        "close {names}",
        "{names} schließen",
        "cerrar {names}",
        "fermer {names}",
        "chiudere {names}",
        "{names} sluiten",
    ),
    "open_or_close": (
        "open or close {names}",
        "{names} öffnen oder schließen",
        "abrir o cerrar {names}",
        "ouvrir ou fermer {names}",
        "aprire o chiudere {names}",
        "{names} openen of sluiten",
    ),
    "open_to": (
        "set {names} to {value} % open",
        "{names} auf {value} % Öffnung stellen",
        "poner {names} al {value} % de apertura",
        "régler {names} à {value} % d’ouverture",
        "portare {names} al {value} % di apertura",
        "{names} op {value} % open zetten",
    ),
    "tilt": (
        "tilt {names}",
        "{names} kippen",
        "inclinar {names}",
        "incliner {names}",
        "inclinare {names}",
        "{names} kantelen",
    ),
    "tilt_to": (
        "tilt {names} to {value} %",
        "{names} auf {value} % kippen",
        "inclinar {names} al {value} %",
        "incliner {names} à {value} %",
        "inclinare {names} al {value} %",
        "{names} tot {value} % kantelen",
    ),
    "stop": (
        "stop {names}",
        "{names} anhalten",
        "detener {names}",
        "arrêter {names}",
        "fermare {names}",
        "{names} stoppen",
    ),
    "start": (
        "start {names}",
        "{names} starten",
        "iniciar {names}",
        "démarrer {names}",
        "avviare {names}",
        "{names} starten",
    ),
    "arm_home": (
        "arm {names} in home mode",
        "{names} im Modus „Zuhause“ scharf schalten",
        "activar {names} en modo «en casa»",
        "activer {names} en mode « présence »",
        "inserire {names} in modalità «in casa»",
        "{names} inschakelen in de modus ‘thuis’",
    ),
    "arm_away": (
        "arm {names} in away mode",
        "{names} im Modus „Abwesend“ scharf schalten",
        "activar {names} en modo «ausente»",
        "activer {names} en mode « absence »",
        "inserire {names} in modalità «fuori casa»",
        "{names} inschakelen in de modus ‘afwezig’",
    ),
    "arm_night": (
        "arm {names} in night mode",
        "{names} im Modus „Nacht“ scharf schalten",
        "activar {names} en modo «noche»",
        "activer {names} en mode « nuit »",
        "inserire {names} in modalità «notte»",
        "{names} inschakelen in de modus ‘nacht’",
    ),
    "arm_vacation": (
        "arm {names} in vacation mode",
        "{names} im Modus „Urlaub“ scharf schalten",
        "activar {names} en modo «vacaciones»",
        "activer {names} en mode « vacances »",
        "inserire {names} in modalità «vacanza»",
        "{names} inschakelen in de modus ‘vakantie’",
    ),
    "arm_custom_bypass": (
        "arm {names} with some sensors bypassed",
        "{names} mit ausgenommenen Sensoren scharf schalten",
        "activar {names} sin algunos sensores",
        "activer {names} sans certains capteurs",
        "inserire {names} senza alcuni sensori",
        "{names} zonder enkele sensoren inschakelen",
    ),
    "disarm": (
        "disarm {names}",
        "{names} unscharf schalten",
        "desactivar {names}",
        "désarmer {names}",
        "disinserire {names}",
        "{names} uitschakelen",
    ),
    "alarm": (
        "set off {names}",
        "{names} auslösen",
        "disparar {names}",
        "déclencher {names}",
        "far scattare {names}",
        "{names} laten afgaan",
    ),
    "turn_on": (
        "turn on {names}",
        "{names} einschalten",
        "encender {names}",
        "allumer {names}",
        "accendere {names}",
        "{names} aanzetten",
    ),
    "turn_on_at": (
        "turn on {names} at {value} %",
        "{names} mit {value} % einschalten",
        "encender {names} al {value} %",
        "allumer {names} à {value} %",
        "accendere {names} al {value} %",
        "{names} op {value} % aanzetten",
    ),
    "turn_off": (
        "turn off {names}",
        "{names} ausschalten",
        "apagar {names}",
        "éteindre {names}",
        "spegnere {names}",
        "{names} uitzetten",
    ),
    "turn_on_or_off": (
        "turn {names} on or off",
        "{names} ein- oder ausschalten",
        "encender o apagar {names}",
        "allumer ou éteindre {names}",
        "accendere o spegnere {names}",
        "{names} aan- of uitzetten",
    ),
    "set_temperature": (
        "set {names} to {value} degrees",
        "{names} auf {value} Grad stellen",
        "poner {names} a {value} grados",
        "régler {names} sur {value} degrés",
        "impostare {names} a {value} gradi",
        "{names} op {value} graden zetten",
    ),
    "set_to": (
        "set {names} to “{value}”",
        "{names} auf „{value}“ stellen",
        "poner {names} en «{value}»",
        "régler {names} sur « {value} »",
        "impostare {names} su «{value}»",
        "{names} op ‘{value}’ zetten",
    ),
    "press": (
        "press {names}",
        "{names} drücken",
        "pulsar {names}",
        "appuyer sur {names}",
        "premere {names}",
        "{names} indrukken",
    ),
    "script": (
        "run the script {names}",
        "das Skript {names} ausführen",
        "ejecutar el script {names}",
        "exécuter le script {names}",
        "eseguire lo script {names}",
        "het script {names} uitvoeren",
    ),
    "scene": (
        "activate the scene {names}",
        "die Szene {names} aktivieren",
        "activar la escena {names}",
        "activer la scène {names}",
        "attivare la scena {names}",
        "de scène {names} activeren",
    ),
    "automation": (
        "run the automation {names}",
        "die Automatisierung {names} ausführen",
        "ejecutar la automatización {names}",
        "exécuter l'automatisation {names}",
        "eseguire l'automazione {names}",
        "de automatisering {names} uitvoeren",
    ),
    "undo": (
        "undo that",
        "das rückgängig machen",
        "deshacer eso",
        "annuler cela",
        "annullare questo",
        "dat ongedaan maken",
    ),
    # A thing in a scene or a group: it is not known what happens to it.
    "change": (
        "change {names}",
        "{names} verändern",
        "cambiar {names}",
        "modifier {names}",
        "modificare {names}",
        "{names} veranderen",
    ),
    # A template decides only when it runs.
    "unknown": (
        "do things that cannot be told in advance",
        "etwas tun, das sich nicht vorhersagen lässt",
        "hacer cosas que no se pueden prever",
        "faire des choses que l'on ne peut pas prévoir",
        "fare cose che non si possono prevedere",
        "dingen doen die niet te voorspellen zijn",
    ),
    # A service or a tool that has no phrase: `{value}` is its name in words.
    "other": (
        "do “{value}”",
        "„{value}“ ausführen",
        "hacer «{value}»",
        "faire « {value} »",
        "fare «{value}»",
        "‘{value}’ uitvoeren",
    ),
    "other_with": (
        "do “{value}” with {names}",
        "„{value}“ mit {names} ausführen",
        "hacer «{value}» con {names}",
        "faire « {value} » avec {names}",
        "fare «{value}» con {names}",
        "‘{value}’ met {names} uitvoeren",
    ),
}
_QUOTES = {"en": "“{}”", "de": "„{}“", "es": "«{}»", "fr": "« {} »", "it": "«{}»", "nl": "‘{}’"}


def fill(key: str, language: str, *, names: str = "", value: str = "") -> str:
    """Return a phrase in a language, such as "open the blind to 40 %"."""
    return _PHRASES[key][LANGUAGES.index(language)].format(names=names, value=value)


def quote(name: str, language: str) -> str:
    """Return a name in the quotation marks of a language."""
    return _QUOTES[language].format(name)


def has_phrase(key: str) -> bool:
    return key in _PHRASES
