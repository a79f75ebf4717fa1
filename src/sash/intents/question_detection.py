"""Tells questions from commands, independent of the grammar.

A question must never change anything. So a sentence is a question if it

* contains a question mark of any script: "the kitchen light on?" is a question, "the kitchen light on" a
  command. A polite request is the exception. It begins with "can you", "kannst du", "peux-tu" or the like,
  which the grammar skips. So "can you turn on the light?" is a command, and "can you tell me if the light is
  on?" is a question.
* begins with a question word, or with a request to tell or check something. The grammars skip some of these
  ("sprawdź", "скажи", "est-ce que"), or take them for a shopping list item ("was ist auf der Liste").

`HomeIntents` adds a third rule: a sentence with both a question and a command as its meaning is no command.
"""

import re
import unicodedata
from functools import lru_cache

# The beginnings of polite requests. The grammars skip most of these words.
_REQUEST_PATTERN = re.compile(
    r"(?:"
    r"(?:can|could|would|will) you(?: have(?= (?:the|my|our|all|every)\b))?|(?:can|could|may) (?:i|we) have"
    r"|(?:wärst|wärest|bist) du (?:mal )?so (?:nett|lieb|gut|freundlich)(?: und)?"
    r"|would it be possible(?: for you)? to|wäre es (?:dir )?(?:vielleicht )?möglich"
    r"|(?:(?:ce|ça) serait|serait[- ]il|est[- ]ce qu['’]il serait) possible (?:de|d(?=['’]))"
    r"|l[oaie] (?:puoi|potresti)|(?:l[oa]s?) (?:puedes|podrías)"
    r"|sería posible|sarebbe possibile|non è che (?:potresti|puoi)|zou het mogelijk zijn om"
    r"|(?:ça|cela) (?:te|vous) (?:dérange|dérangerait|ennuie|ennuierait) (?:de|d(?=['’]))"
    r"|(?:serías|sería) tan amable de|saresti così gentile da|ben je zo (?:lief|vriendelijk) om"
    r"|(?:kannst|könntest|würdest|magst) du|du könntest|chönntisch|chasch|würdi?sch"
    r"|(?:est[- ]ce que )?(?:tu (?:peux|pourrais)|vous (?:pouvez|pourriez))"
    r"|(?:peux|pourrais|veux)[- ]tu|(?:pouvez|pourriez|voulez)[- ]vous|(?:tu veux|vous voulez) bien"
    r"|(?:tu|vous) (?:me |m['’]|nous )?(?:allumes|allumez|éteins|éteignez|ouvres|ouvrez|fermes|fermez"
    r"|montes|baisses|mets|mettez)"
    r"|(?:me|nos) (?:enciendes|prendes|apagas|pones|abres|cierras|subes|bajas|quitas|activas)"
    r"|(?:te|le) molestaría"
    r"|ti (?:dispiace|dispiacerebbe|spiace|va di|andrebbe di)|che ne dici di"
    r"|(?:me )?(?:podr[íi]as?|puedes?|pod[ée]s)|(?:te|le) importa(?:r[íi]a)?|te anim[aá]s a"
    r"|(?:mi |ci )?(?:potrest[ei]|puoi|può|potrebbe)|(?:sai|sapresti|saprebbe)(?= dirmi\b)"
    r"|(?:mi|ci|me l[oaie]|ce l[oaie]) (?:accendi|spegni|apri|chiudi|alzi|abbassi|metti|togli|avvii)"
    r"|(?:mi|ci) (?:attivi|disattivi)"
    r"|(?:mi |ci )?(?:accend|spegn|apr|chiud|alz|abbass|mett|attiv|disattiv)[ei]rest[ei]"
    r"|(?:kan|mag|kunnen|mogen)(?= (?:de|het|die|dat|er|alle|alles)\b)"
    r"|pode(?:s|r[íi]as?)?"
    r"|(?:kan|kun|wil|zou) (?:je|jij)|(?:kunt|wilt|zou) u|(?:kan|sal) jy(?: asseblief)?"
    r"|(?:kan|kunne|vil|kunde|skulle) du"
    r"|voitko|voisitko|geturðu|getur þú|viltu|vilt þú"
    r"|můžeš|mohla? bys|môžeš|mohol by si|mohla by si"
    r"|(?:czy )?(?:możesz|mógłbyś|mogłabyś)"
    r"|može(?:š|te)(?: li)?(?: da)?|може(?:ш|те)?(?: ли)?(?: да)?|(?:ты )?можешь|poți|ați putea"
    r"|μπορείς(?: να)?|θα μπορούσες(?: να)?"
    r"|هل يمكنك|تقدر|אתה? יכולה?|תוכלי?|אפשר"
    r"|կարող (?:ես|եք)|შეგიძლიათ?|unaweza|boleh tak|(?:bạn )?có thể|(?:ar )?gali|(?:vai )?vari|सक्छौ"
    r"|wnewch chi|allwch chi|wnei di|alli di|fedri di|fedrwch chi|a yll'ta"
    r")(?!\w)\W*",
    re.IGNORECASE,
)
# What may come before a polite request: "hey Sash, can you …".
_ADDRESS_PATTERN = re.compile(
    r"(?:(?:oye|hey|hi|hello|hola|hallo|salut|ciao|hoi|ok|okay)\W+)?(?:sash\W+)?", re.IGNORECASE
)
# The beginnings of questions, by language.
_QUESTION_BEGINNINGS = {
    "ar": "هل|ما|ماذا|أين|كم|من",
    "bg": "кажи ми|какво|кой|коя|кои|къде|кога|защо|как|колко|дали",
    "ca": "(?:em |que )?(?:pots|podries) dir(?:-me)?|està|estan|què|quin[as]?|quants?|qui|on|quan|com",
    "cs": "je|jsou|co|kter[ýáéí]|kdo|kde|kdy|proč|jak|kolik",
    "da": "er|hvad|hvilken|hvilke[nt]?|hvem|hvor|hvornår|hvorfor|hvordan",
    "de": "sage? mir|weißt du|prüfe?|ist|sind|war|waren|hat|haben|was|welche[rsnm]?|wer|wem|wen|wo|wann|warum"
    "|wieso|weshalb|wie|wieviele?|gibt|brennt|läuft|steht|noch|gerade|momentan|derzeit|aktuell"
    "|.* noch (?:an|aus|auf|zu|offen|geschlossen|eingeschaltet|ausgeschaltet)",
    "de-CH": "säg mer|isch|sind|was|weli|welli|wär|wo|wänn|werum|wie|git",
    "el": "είναι|τι|ποι\\w+|πού|που|πότε|γιατί|πώς|πόσ\\w+",
    "en": "tell me|can(?= (?:the|my|our|this|that|it|they) )|do you know|check (?:if|whether)|is|are|was|were"
    "|does|do|did|has|have|had|what|which|who"
    "|whose|where|when|why|how",
    "es": "d[ií](?:me|game)|decir(?:me|nos)?|está|están|es|son|qué|cuál(?:es)?|quién(?:es)?|dónde"
    "|cuándo|cómo|cuánt[oa]s?|hay",
    "eu": "ea|ote|zer|zein|nor|non|noiz|nola|zenbat",
    "fi": r"\w+k[oö]|mikä|mitkä|mitä|missä|milloin|miksi|miten|kuka|kuinka",
    "fr": "dis[- ]moi|est[- ]ce (?:que|qu['’])|qu['’]est[- ]ce|est|sont|quel(?:le)?s?|qui|où|quand|pourquoi"
    "|comment|combien|que",
    "gl": "está|están|que|cal|cales|quen|onde|cando|como|cant[oa]s",
    "he": "האם|מה|מי|איפה|מתי|למה|איך|כמה|איז\\w+",
    "hi": "क्या|कौन|कहाँ|कब|कितन\\w+",
    "hr": "je li|jesu li|da li|što|koj[aei]|tko|gdje|kada|zašto|kako|koliko",
    "hu": "mi|mely|melyik|ki|hol|mikor|miért|hogyan|hány|mennyi",
    "hy": "ասա|ասեք|ստուգիր|իմացիր",
    "is": "segðu|sagt mér|veist þú|er|eru|hvað|hver|hvar|hvenær|hvernig|hversu",
    "it": "dimmi|dirmi|dicci|dire|(?:mi|ci) dic[ia]|è|sono|c'è|ci sono|che|cosa|quale|quali|chi|dove|quando"
    "|perché|come|quant[ioae]",
    "ja": ".*か",
    "lb": "ass|sinn|wat|wéi|wien|wou|wéini|firwat",
    "lt": "ar(?! gali)|kas|koks|kokia|kur|kada|kodėl|kaip|kiek",
    "lv": "vai(?! vari)|ir|kas|kāds|kāda|kur|kad|kāpēc|kā|cik",
    "nb": "er|hva|hvilke[nt]?|hvem|hvor|når|hvorfor|hvordan",
    "nl": "vertel|zeg me|is|zijn|wat|welke?|wie|waar|wanneer|waarom|hoe|hoeveel|staat|staan",
    "pl": "powiedz|sprawdź|zerknij|czy(?! (?:możesz|mógłbyś|mogłabyś))|co|któr[yae]|kto|gdzie|kiedy|dlaczego"
    "|jak|ile|jest|są",
    "pt": "diz-me|diga|está|estão|é|são|o que|que|qual|quais|quem|onde|quando|porquê|como|quant[oa]s?|há",
    "pt-BR": "me diga|diga|está|estão|é|são|o que|que|qual|quais|quem|onde|quando|por que|como|quant[oa]s?"
    "|há|tem",
    "ro": "spune-mi|este|sunt|e|ce|care|cine|unde|când|de ce|cum|cât[eăi]?",
    "ru": "скажи|сказать|узнай|узнать|что|как\\w+|кто|где|когда|почему|сколько|есть",
    "sk": "mrkni sa|skontroluj|je|sú|čo|ktor[ýáé]|kto|kde|kedy|prečo|ako|koľko",
    "sl": "ali|kaj|kater[iaeo]|kdo|kje|kdaj|zakaj|kako|koliko|je|so",
    "sr": "да ли|је ли|шта|кој[аеи]|ко|где|када|зашто|како|колико",
    "sr-Latn": "da li|je li|šta|koj[aei]|ko|gde|kada|zašto|kako|koliko",
    "sv": "säg|är|vad|vilk[ae]n?|vilket|vem|var|när|varför|hur",
    "tr": r".*\bm[ıiuü]|ne|hangi\w*|kim|nerede|niçin|neden|nasıl|kaç",
    "uk": "скажи|чи|що|як\\w+|хто|де|коли|чому|скільки",
    "vi": "(?:hãy )?(?:cho )?tôi biết|bạn có biết|.* không",
    "zh-CN": "(?:请问|告诉我|是否|有没有|哪|什么).*|.*[吗呢]",
    "zh-HK": "(?:請問|話我知|有冇|係咪|邊).*|.*[嗎呢呀]",
    "zh-TW": "(?:請問|告訴我|是否|有沒有|哪|什麼).*|.*[嗎呢]",
}
# The beginnings of questions about what a thing can do, by language.
_ABILITY_PATTERNS = {
    language: re.compile(rf"(?:{words})(?!\w)", re.IGNORECASE)
    for language, words in {
        "en": "can (?:the|my|our|this|that|it|they)",
        "de": "(?:kann|lässt sich|können) (?:man|der|die|das|es|sich|mein|meine)",
        "fr": "peut[- ]on|(?:est-ce qu['’]on|est-ce que (?:le|la|les|on)) .{0,60}peu(?:t|vent)",
        "es": "se pueden?|pueden? (?:el|la|los|las)",
        "it": "si può|si possono|può (?:il|la|lo)",
        "nl": "(?:kan|kunnen) (?:de|het|mijn)",
    }.items()
}
# Characters that may open a question or a quotation.
_OPENING_CHARACTERS = " \t\r\n¿¡'\"«“„([-–—…"


def is_question(text: str, language: str) -> bool:
    """Return whether a sentence asks for information, so that no action may follow."""
    stripped = " ".join(text.split()).lstrip(_OPENING_CHARACTERS)
    pattern = _compile_beginnings(language)
    if request := _match_request(stripped):
        return pattern is not None and pattern.match(stripped, request.end()) is not None
    return _has_question_mark(text, language) or (pattern is not None and pattern.match(stripped) is not None)


def asks_ability(text: str, language: str) -> bool:
    """Return whether a sentence asks what a thing can do: "can the kitchen light be dimmed?"."""
    pattern = _ABILITY_PATTERNS.get(language)
    return pattern is not None and pattern.match(text.lstrip(_OPENING_CHARACTERS)) is not None


def is_polite_request(text: str) -> bool:
    """Return whether a sentence begins with "can you" or the like."""
    return _match_request(text.lstrip(_OPENING_CHARACTERS)) is not None


def _match_request(text: str) -> re.Match[str] | None:
    """Return the beginning of a polite request, also after an address: "hey Sash, can you"."""
    address = _ADDRESS_PATTERN.match(text)
    return _REQUEST_PATTERN.match(text, address.end() if address else 0)


@lru_cache
def _compile_beginnings(language: str) -> re.Pattern[str] | None:
    words = _QUESTION_BEGINNINGS.get(language)
    return re.compile(rf"(?:{words})(?!\w)", re.IGNORECASE) if words else None


def has_question_mark(text: str) -> bool:
    """Return whether a text has a question mark of any script."""
    return any("QUESTION" in unicodedata.name(sign, "") for sign in text if not sign.isalnum())


def _has_question_mark(text: str, language: str) -> bool:
    """Return whether a text has a question mark. In Greek it is often a semicolon."""
    return has_question_mark(text) or (language == "el" and text.rstrip().endswith(";"))
