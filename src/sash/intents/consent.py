"""A yes or a no, as people say it; whoever says anything else has said neither."""

import re

LONGEST = 60

# In some twenty languages: no word is a yes in one of them and a no in another.
_YES = (
    r"y|j|yes|yeah|yep|yup|sure|ok|okay|of course|do it|go ahead|confirm(?:ed)?|absolutely|definitely"
    r"|ja|jawohl|jo|klar|gerne|natürlich|in ordnung|mach (?:das|es)|oui|ouais|d['’]accord|vas[ -]y"
    r"|s[íiì]|claro|vale|adelante|de acuerdo|certo|va bene|sim|graag|oké|prima|doe maar|japp|gärna|okej"
    r"|kyllä|joo|tak|jasne|ano|jasně|igen|да|конечно|так|evet|tamam|ναι"
    r"|是|是的|好|好的|可以|はい|うん|お願いします|네|예"
)
_NO = (
    r"n|no|nope|nah|do not|don['’]t(?: do it)?|better not|never|stop|cancel(?: it| that)?"
    r"|nein|nee|nö|(?:lieber |bitte )?nicht|niemals|abbrechen|lass (?:das|es)|non|annule|nunca|cancela"
    r"|annulla|não|nej(?: tak)?|nei|ei|nie|ne|nem|нет|ні|hayır|όχι|不|不要|不用|いいえ|いや|だめ|아니|아니요"
)
_POLITE = r"please|bitte|thanks|thank you|danke|merci|gracias|grazie|obrigado|dank je|sash"


def _saying(words: str) -> re.Pattern[str]:
    return re.compile(rf"\W*(?:(?:{_POLITE})\W+)*(?:{words})(?:\W+(?:{words}|{_POLITE}))*\W*", re.IGNORECASE)


_yes, _no = _saying(_YES), _saying(_NO)


def consent(text: str) -> bool | None:
    """Return whether a text says yes or no; None if it is neither."""
    if len(text) > LONGEST:
        return None
    if _yes.fullmatch(text):
        return True
    return False if _no.fullmatch(text) else None
