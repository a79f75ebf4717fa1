"""Does an answer say that something was done just now? What it says of earlier times is not looked at."""

import re

# What an agent says it has done to a house, by language.
_DONE_EN = (
    r"(?:turned|switched|set|dimmed|brightened|opened|closed|shut|locked|unlocked|started|stopped|paused|resumed"
    r"|activated|deactivated|armed|disarmed|enabled|disabled|adjusted|changed|increased|decreased|lowered|raised"
    r"|muted|unmuted|triggered|restarted|rebooted|scheduled|cancelled|canceled|turned up|turned down)"
)
_STATE_EN = r"(?:on|off|open|closed|locked|unlocked|armed|disarmed|set|running|playing|muted)"
_DONE_DE = (
    r"(?:(?:ein|aus|an|ab|um)geschaltet|(?:an|aus)gemacht|(?:ein|hoch|runter|herunter)?gestellt|gesetzt|ge(?:ö|oe)ffnet"
    r"|geschlossen|(?:ver|ent)riegelt|abgeschlossen|aufgeschlossen|gedimmt|gestartet|gestoppt|angehalten"
    r"|(?:de)?aktiviert|eingestellt|ge(?:ä|ae)ndert|erh(?:ö|oe)ht|gesenkt)"
)
_DONE_FR = (
    r"(?:allumé|éteint|ouvert|fermé|verrouillé|déverrouillé|réglé|mis|activé|désactivé|démarré|arrêté|baissé"
    r"|augmenté|tamisé)"
)
_DONE_ES = (
    r"(?:encendido|apagado|abierto|cerrado|bloqueado|desbloqueado|ajustado|puesto|activado|desactivado|iniciado"
    r"|detenido|bajado|subido)"
)
_DONE_IT = (
    r"(?:acceso|spento|aperto|chiuso|bloccato|sbloccato|impostato|regolato|attivato|disattivato|avviato|fermato"
    r"|abbassato|alzato)"
)
_DONE_NL = (
    r"(?:aangezet|uitgezet|ingeschakeld|uitgeschakeld|geopend|gesloten|vergrendeld|ontgrendeld|ingesteld|gedimd"
    r"|gestart|gestopt|geactiveerd)"
)

_claim = re.compile(
    "|".join(
        (
            rf"\bI(?:['’]ve| have)?(?: just| now| also| successfully| gone ahead and)* {_DONE_EN}\b",
            rf"\b(?:has|have)(?: just| now| also| successfully)* been(?: successfully)? {_DONE_EN}\b",
            rf"\b(?:is|are) now (?:(?:turned|switched) )?{_STATE_EN}\b",
            r"^\W*(?:(?:ok|okay|sure|alright|yes)\W+)?(?:done|all done|all set|consider it done)\b",
            rf"\bich (?:habe|hab)\b[^.!?]{{0,120}}\b{_DONE_DE}\b",
            rf"\b(?:wurden?|ist jetzt|sind jetzt)\b[^.!?]{{0,80}}\b{_DONE_DE}\b",
            r"^\W*erledigt\b",
            rf"\bj['’]ai(?: bien| maintenant)? {_DONE_FR}e?s?\b",
            r"^\W*c['’]est fait\b",
            rf"\bhe {_DONE_ES}\b",
            r"^\W*(?:hecho|listo)\b",
            rf"\bho {_DONE_IT}\b",
            r"^\W*fatto\b",
            rf"\bik heb\b[^.!?]{{0,120}}\b{_DONE_NL}\b",
            r"^\W*(?:gedaan|klaar)\b",
        )
    ),
    re.IGNORECASE,
)
# What speaks of another time, or of what is not so.
_elsewhen = re.compile(
    r"\b(?:ago|earlier|already|yesterday|previously|last (?:night|week|time|turn)|this morning|before|if|when"
    r"|once|unless|\d{1,2}(?::\d\d| ?[ap]m| o['’]clock| uhr)|since|bereits|schon|gestern|vorhin|vor \d+|wenn"
    r"|falls|déjà|ayer|ieri|già|gisteren)\b",
    re.IGNORECASE,
)
_sentence = re.compile(r"[^.!?\n]+[.!?]*")


def claim(answer: str) -> str | None:
    """Return the first sentence of an answer that says that something was done just now."""
    if not _claim.search(answer):
        return None
    sentences = (match.group().strip() for match in _sentence.finditer(answer))
    claimed = (s for s in sentences if _claim.search(s) and not _elsewhen.search(s))
    return next((s for s in claimed if not s.endswith("?")), None)
