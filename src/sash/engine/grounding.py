"""Finds answers that claim an action although no tool performed one.

Correcting an honest answer is worse than missing a false one, so only a plain claim counts. Sentences that
deny, ask, suppose or speak of another time do not count. Quotations do not count either. An answer to a
question, and a text that the user asked for, is never corrected.
"""

import re
from collections.abc import Callable
from typing import NamedTuple


class _Language(NamedTuple):
    """The patterns of one language: `done` claims an action, `state` claims a new state."""

    done: str
    state: str
    nothing_done: str


_VERBS_EN = (
    r"(?:turned|switched|set(?! (?:out|of))|dimmed|brightened|opened|closed|shut|locked|unlocked|started|stopped|paused|resumed"
    r"|activated|deactivated|armed|disarmed|enabled|disabled|adjusted|changed|increased|decreased|lowered|raised"
    r"|muted|unmuted|triggered|restarted|rebooted|scheduled|put|added|deleted|created|sent|played)"
)
_VERBS_DE = (
    r"(?:(?:ein|aus|an|ab|um)geschaltet|(?:an|aus)gemacht|(?:ein|hoch|runter|herunter)?gestellt|gesetzt"
    r"|ge(?:ö|oe)ffnet|geschlossen|(?:ver|ent)riegelt|abgeschlossen|aufgeschlossen|gedimmt|gestartet|gestoppt"
    r"|angehalten|(?:de)?aktiviert|ge(?:ä|ae)ndert|erh(?:ö|oe)ht|gesenkt|zugesperrt|aufgesperrt"
    r"|(?:hoch|herunter|runter)gedreht)"
)
_OKAY = r"^\W*(?:(?:ok|okay|sure|alright|yes|ja|gut|klar|oui|sí|si|va bene)\W+)?"
_LANGUAGES = (
    _Language(
        rf"\b(?:I|we)(?:['’]ve| have)?(?: just| now| also| successfully| gone ahead and| gone and)* {_VERBS_EN}\b"
        rf"|{_OKAY}(?:it['’]s |that['’]s |it is |all )?(?:done|all set|consider it done)(?=[.!]|,|\s*$)"
        rf"|{_OKAY}(?:successfully )?(?:turned|switched|turning|switching) (?:on|off)\b",
        rf"(?:['’]s| has| have)(?: just| now)* been (?:successfully )?{_VERBS_EN}\b"
        r"|\b(?:is|are) now (?:(?:turned|switched) )?(?:on|off|open|closed|locked|unlocked|armed|disarmed|set)\b"
        r"|\b(?:is|are) (?:on|off|open|closed|locked|unlocked|armed|disarmed|set) now\b",
        "I have not done that: no action was carried out in this turn.",
    ),
    _Language(
        rf"(?:\b(?:ich habe?|habe? ich)|^\W*habe?)\b[^.!?:,]{{0,120}}\b{_VERBS_DE}\b|{_OKAY}(?:ist )?erledigt\b"
        r"|\bich (?:schalte|mache|stelle)\b[^.!?:,]{0,80}\b(?:ein|aus|an|auf|zu)\W*$|^\W*habe ich gemacht\b",
        rf"\bwurden?\b[^.!?]{{0,80}}\b{_VERBS_DE}\b"
        r"|\b(?:ist|sind) jetzt (?:an|aus|auf|zu|offen|geschlossen|verriegelt|entriegelt|eingeschaltet|ausgeschaltet)\b",
        "Das habe ich nicht getan: In diesem Zug wurde keine Aktion ausgeführt.",
    ),
    _Language(
        r"\bj['’]ai(?: bien| maintenant)? (?:allumé|éteint|ouvert|fermé|verrouillé|déverrouillé|réglé|activé"
        rf"|désactivé|démarré|arrêté|baissé|augmenté|tamisé)e?s?\b|{_OKAY}c['’]est fait\b",
        r"\b(?:est|sont) maintenant (?:allumé|éteint|ouvert|fermé|verrouillé)e?s?\b",
        "Je ne l'ai pas fait : aucune action n'a été effectuée pendant ce tour.",
    ),
    _Language(
        r"\bhe (?:encendido|apagado|abierto|cerrado|bloqueado|desbloqueado|ajustado|puesto|activado|desactivado"
        rf"|iniciado|detenido|bajado|subido)\b|{_OKAY}(?:hecho|listo)\b",
        r"\bahora est(?:á|án) (?:encendid|apagad|abiert|cerrad|bloquead)[oa]s?\b",
        "No lo he hecho: en este turno no se ha realizado ninguna acción.",
    ),
    _Language(
        r"\bho (?:acceso|spento|aperto|chiuso|bloccato|sbloccato|impostato|regolato|attivato|disattivato|avviato"
        rf"|fermato|abbassato|alzato)\b|{_OKAY}fatto\b",
        r"\b(?:è|sono) ora (?:acces|spent|apert|chius|bloccat)[oaie]\b",
        "Non l'ho fatto: in questo turno non è stata eseguita alcuna azione.",
    ),
    _Language(
        r"\bik heb\b[^.!?]{0,120}\b(?:aangezet|uitgezet|ingeschakeld|uitgeschakeld|geopend|gesloten|vergrendeld"
        rf"|ontgrendeld|ingesteld|gedimd|gestart|gestopt|geactiveerd)\b|{_OKAY}(?:gedaan|klaar)\b",
        r"\b(?:is|zijn) nu (?:aan|uit|open|dicht|gesloten|vergrendeld)\b",
        "Dat heb ik niet gedaan: in deze beurt is geen actie uitgevoerd.",
    ),
)
_patterns = [
    (re.compile(language.done, re.I), re.compile(f"{language.done}|{language.state}", re.I), language)
    for language in _LANGUAGES
]
_MAX_CHARS = 4000
_sentence = re.compile(r"[^.!?\n]+[.!?]*")

# Not a claim: denied, at another time, done by another person, or only supposed.
_not_now = re.compile(
    r"\b(?:not|no|nothing|none|never|nobody|neither|without|ago|earlier|already|yesterday|previously|before|since"
    r"|last (?:night|week|time|turn|evening)|this morning|at \d{1,2}(?::\d\d| ?[ap]m\b| o['’]clock)"
    r"|by (?!\d)\w+|times|today|according|sensor\w*|reports?|for \w+ (?:hours?|minutes?|days?)|nicht|kein\w*|nichts|nie|niemand|ohne|bereits|schon|gestern|vorhin|heute|vor \d+"
    r"|seit|um \d{1,2}(?::\d\d)? uhr|von [^\W\d]\w*|laut|pas|rien|aucun\w*|jamais|déjà|hier|ningun\w*"
    r"|nada|nunca|ayer|nessun\w*|nulla|mai|ieri|già|niet|geen|niets|nooit|gisteren)\b|n['’]t\b",
    re.I,
)
_supposed = re.compile(
    r"\b(?:could|would|might|if|when|once|unless|after|wenn|falls|sobald|nachdem|si|quand|cuando|se|quando|als"
    r"|(?:you|he|she|they) (?:said|told|wrote)|du (?:sagtest|schriebst)|du hast (?:gesagt|geschrieben)|tu as dit"
    r"|dijiste|hai detto|je zei)\b",
    re.I,
)
# A quotation tells the words of another text. A line that begins with ">" is one in Markdown.
_quotation = re.compile(
    r"\"[^\"\n]{1,800}\"|[“„][^“”\n]{1,800}[“”]|«[^»\n]{1,800}»|(?<!\w)['‘][^\n]{1,800}?['’](?!\w)|^[ \t]{0,3}>.*$",
    re.M,
)

# Requests for a text: a story, a translation, a repetition. Such a text may describe actions that did not happen.
_text_request = re.compile(
    r"\b(?:tell|write|compose|invent|make up|draft|give|recite|continue|erz(?:ä|ae)hl\w*|schreib\w*|dichte|erfinde"
    r"|raconte\w*|écris|écrivez|cuenta\w*|escribe\w*|racconta\w*|scrivi\w*|vertel|schrijf)\b[^.!?\n]{0,60}"
    r"\b(?:\w*story|stories|tales?|poems?|jokes?|novel|letter|e-?mail|song|essay|dialogue|haiku|limerick|fable|chapter"
    r"|sentences?|\w*geschichte|märchen|gedicht|witz|brief|lied|roman|satz|histoire|conte|poème|blague|lettre"
    r"|chanson|historia|cuento|poema|chiste|carta|canción|storia|racconto|poesia|barzelletta|lettera|verhaal"
    r"|sprookje|grap)\b"
    r"|^\W*(?:please\W+|bitte\W+)?(?:translate|repeat|quote|pretend|imagine|role-?play|übersetze?|wiederhole?|traduis"
    r"|répète|traduce|repite|traduci|ripeti|vertaal|herhaal)\b",
    re.I,
)

# Questions ask for a report. A request in the form of a question ("can you …?") is not one of them.
_question = re.compile(
    r"\?\s*$|^\W*(?:is|are|was|were|did|does|do|has|have|had|what|which|when|where|who|why|how|ist|sind|war|waren|hast"
    r"|habt|was|welche\w*|wann|wo|wer|warum|wie|gibt)\b",
    re.I,
)
_request = re.compile(
    r"^\W*(?:(?:please|bitte|hey sash|sash)\W+)?(?:can|could|would|will) (?:you|we)\b|^\W*(?:kannst|könntest|würdest"
    r"|machst|schaltest|stellst) du\b|^\W*(?:peux|pourrais)[- ]tu\b|^\W*(?:puedes|podrías|puoi|potresti|kun je)\b",
    re.I,
)


def is_question(message: str) -> bool:
    """Return True if a message asks for information and not for an action.

    Only the beginning and the end of a long message are read.
    """
    message = _shorten(message)
    return bool(_question.search(message)) and not _request.search(message)


def asks_for_text(message: str) -> bool:
    """Return True if a message asks for a story, a translation or another text, and not for an action.

    Only the beginning and the end of a long message are read.
    """
    return bool(_text_request.search(_shorten(message)))


def claim(
    answer: str, *, looked: bool = False, is_so: Callable[[str], bool] = lambda sentence: False
) -> str | None:
    """Return a correction in the answer's language if the answer claims an action, else None.

    After a tool call (`looked`) an answer may report a state; it may never report an action that did not
    happen. Without a tool call, `is_so` returns True for a sentence that reports a state which the home has.
    """
    unquoted = _quotation.sub("…", answer[:_MAX_CHARS])
    if not unquoted.strip(" …\n"):
        unquoted = answer[:_MAX_CHARS]
    for match in _sentence.finditer(unquoted):
        sentence = match.group().strip()
        if sentence.endswith("?") or _not_now.search(sentence):
            continue
        for done, done_or_state, language in _patterns:
            found = (done if looked else done_or_state).search(sentence)
            if not found or _supposed.search(sentence[: found.start()]):
                continue
            if looked or done.search(sentence) or not is_so(sentence):
                return language.nothing_done
    return None


def _shorten(message: str) -> str:
    return message if len(message) <= _MAX_CHARS else message[: _MAX_CHARS // 2] + message[-_MAX_CHARS // 2 :]
