"""The sentences that report a waiting turn which has fired, in six languages."""

from typing import NamedTuple


class FiredSentences(NamedTuple):
    """The sentences of one language. `{0}` is what was to be done, `{1}` a time or a reason."""

    message: str
    done: str
    dry_run: str
    unseen: str
    unknown: str
    failed: str
    denied: str
    refused: str
    not_now: str
    missed: str
    given_up: str
    late_down: str
    late: str
    state: str
    no_state: str


_SENTENCES = {
    "en": FiredSentences(
        "Due now: {0}",
        "Done: {0}.",
        "Nothing was changed, because this is only a rehearsal: {0}.",
        "I tried, but saw no effect: {0}.",
        "I do not know whether this was done: {0}.",
        "This did not work: {0}.",
        "I was not allowed to do this: {0}.",
        "I did not do this, because you said no: {0}.",
        "I did nothing, because {1}: {0}.",
        "I missed this: {0}. It was due at {1}, and now it is too late.",
        "I waited for a year, and I wait no longer: {0}.",
        "That was due at {0}; Sash was not running.",
        "That was due at {0}.",
        "{0} is {1}",
        "the state of the home is not known",
    ),
    "de": FiredSentences(
        "Jetzt fällig: {0}",
        "Erledigt: {0}.",
        "Es wurde nichts verändert, denn das ist nur eine Probe: {0}.",
        "Ich habe es versucht, aber keine Wirkung gesehen: {0}.",
        "Ich weiß nicht, ob das getan wurde: {0}.",
        "Das hat nicht geklappt: {0}.",
        "Das durfte ich nicht tun: {0}.",
        "Ich habe das nicht getan, weil du Nein gesagt hast: {0}.",
        "Ich habe nichts getan, denn {1}: {0}.",
        "Das habe ich verpasst: {0}. Es war um {1} fällig, und jetzt ist es zu spät.",
        "Ich habe ein Jahr gewartet und warte nicht länger: {0}.",
        "Das war um {0} fällig; Sash lief nicht.",
        "Das war um {0} fällig.",
        "{0} ist {1}",
        "der Zustand des Hauses ist nicht bekannt",
    ),
    "es": FiredSentences(
        "Ahora toca: {0}",
        "Hecho: {0}.",
        "No se ha cambiado nada, porque es solo una prueba: {0}.",
        "Lo he intentado, pero no he visto ningún efecto: {0}.",
        "No sé si esto se ha hecho: {0}.",
        "Esto no ha funcionado: {0}.",
        "No se me ha permitido hacer esto: {0}.",
        "No lo he hecho, porque has dicho que no: {0}.",
        "No he hecho nada, porque {1}: {0}.",
        "Se me ha pasado: {0}. Tocaba a las {1}, y ya es demasiado tarde.",
        "He esperado un año, y ya no espero más: {0}.",
        "Tocaba a las {0}; Sash no estaba en marcha.",
        "Tocaba a las {0}.",
        "{0} está {1}",
        "no se conoce el estado de la casa",
    ),
    "fr": FiredSentences(
        "C'est le moment : {0}",
        "C'est fait : {0}.",
        "Rien n'a été changé, car ce n'est qu'un essai : {0}.",
        "J'ai essayé, mais je n'ai vu aucun effet : {0}.",
        "Je ne sais pas si cela a été fait : {0}.",
        "Cela n'a pas marché : {0}.",
        "Je n'avais pas le droit de faire cela : {0}.",
        "Je ne l'ai pas fait, car tu as dit non : {0}.",
        "Je n'ai rien fait, car {1} : {0}.",
        "Je l'ai manqué : {0}. C'était prévu à {1}, et il est trop tard maintenant.",
        "J'ai attendu un an, et je n'attends plus : {0}.",
        "C'était prévu à {0} ; Sash n'était pas en marche.",
        "C'était prévu à {0}.",
        "{0} : {1}",
        "l'état de la maison n'est pas connu",
    ),
    "it": FiredSentences(
        "È il momento: {0}",
        "Fatto: {0}.",
        "Non è stato cambiato nulla, perché è solo una prova: {0}.",
        "Ci ho provato, ma non ho visto alcun effetto: {0}.",
        "Non so se questo è stato fatto: {0}.",
        "Non ha funzionato: {0}.",
        "Non mi era permesso farlo: {0}.",
        "Non l'ho fatto, perché hai detto di no: {0}.",
        "Non ho fatto nulla, perché {1}: {0}.",
        "L'ho mancato: {0}. Era previsto alle {1}, e ora è troppo tardi.",
        "Ho aspettato un anno, e non aspetto più: {0}.",
        "Era previsto alle {0}; Sash non era in funzione.",
        "Era previsto alle {0}.",
        "{0} è {1}",
        "lo stato della casa non è noto",
    ),
    "nl": FiredSentences(
        "Nu aan de beurt: {0}",
        "Gedaan: {0}.",
        "Er is niets veranderd, want dit is maar een proef: {0}.",
        "Ik heb het geprobeerd, maar geen effect gezien: {0}.",
        "Ik weet niet of dit is gedaan: {0}.",
        "Dit is niet gelukt: {0}.",
        "Ik mocht dit niet doen: {0}.",
        "Ik heb dit niet gedaan, omdat je nee zei: {0}.",
        "Ik heb niets gedaan, want {1}: {0}.",
        "Ik heb dit gemist: {0}. Het moest om {1}, en nu is het te laat.",
        "Ik heb een jaar gewacht en wacht niet langer: {0}.",
        "Dat moest om {0}; Sash stond niet aan.",
        "Dat moest om {0}.",
        "{0} is {1}",
        "de toestand van het huis is niet bekend",
    ),
}


def choose_sentences(language: str | None) -> FiredSentences:
    """Return the sentences of a language such as "de" or "de-AT". Another language gets English ones."""
    return _SENTENCES.get((language or "en").lower().partition("-")[0], _SENTENCES["en"])
