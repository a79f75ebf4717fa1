"""Recognizes answers that approve or deny a request, in about twenty languages."""

import re

MAX_CHARS = 60

# No word means yes in one language and no in another.
_YES_WORDS = (
    r"y|j|yes|yeah|yep|yup|sure|ok|okay|of course|do it|go ahead|confirm(?:ed)?|absolutely|definitely"
    r"|ja|jawohl|jo|klar|gerne|natürlich|in ordnung|mach (?:das|es)|oui|ouais|d['’]accord|vas[ -]y"
    r"|s[íiì]|claro|vale|adelante|de acuerdo|certo|va bene|sim|graag|oké|prima|doe maar|japp|gärna|okej"
    r"|kyllä|joo|tak|jasne|ano|jasně|igen|да|конечно|так|evet|tamam|ναι"
    r"|是|是的|好|好的|可以|はい|うん|お願いします|네|예"
)
_NO_WORDS = (
    r"n|no|nope|nah|do not|don['’]t(?: do it)?|better not|never|stop|cancel(?: it| that)?"
    r"|never ?mind|forget (?:about )?(?:it|that)|(?:leave|skip|drop) (?:it|that)"
    r"|nein|nee|nö|(?:lieber |bitte )?nicht|niemals|abbrechen|lass (?:das|es|mal)(?: sein)?"
    r"|vergiss (?:das|es)|(?:ist |schon )?egal|schon gut"
    r"|non|annule|laissez?(?: tomber)?|oubliez?(?: [cç]a)?|tant pis"
    r"|nunca|cancela|d[ée]jalo|olv[íi]dalo|da igual|no importa"
    r"|annulla|lascia (?:stare|perdere)|non importa|laat maar(?: zitten)?|vergeet (?:het|dat)(?: maar)?"
    r"|não|deixa(?: pra lá)?|esquece|nej(?: tak)?|nei|glem det|glöm det"
    r"|ei|nie|ne|nem|нет|ні|hayır|όχι|不|不要|不用|いいえ|いや|だめ|아니|아니요"
)
_POLITE_WORDS = r"please|bitte|thanks|thank you|danke|merci|gracias|grazie|obrigado|dank je|sash"


def _build_pattern(words: str) -> re.Pattern[str]:
    return re.compile(
        rf"\A\W*+(?:(?:{_POLITE_WORDS})\W++)*(?:{words})(?:\W++(?:{words}|{_POLITE_WORDS}))*\W*+\Z",
        re.IGNORECASE,
    )


_YES_PATTERN, _NO_PATTERN = _build_pattern(_YES_WORDS), _build_pattern(_NO_WORDS)


def parse_approval(text: str) -> bool | None:
    """Return True for an approval, False for a denial, and None for any other text."""
    if len(text) > MAX_CHARS:
        return None
    if _YES_PATTERN.match(text):
        return True
    return False if _NO_PATTERN.match(text) else None
