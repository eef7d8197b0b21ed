"""Whether what a person wrote says "stop". The whole message has to say it: a sentence with the word in it does not.

Pure. What is compared is normalised on both sides: letters without case, marks and disguise (full-width forms,
zero-width characters), nothing that is no letter or digit. Neighbour: `orchestrator.inbound` asks; the words of a
setting (`STOP_WORDS`) are added to ours.
"""

import unicodedata
from collections.abc import Iterable

LONGEST = 120
"""Characters of a message that can still be a word and a courtesy; anything longer is a letter."""

_WORDS: dict[str, str] = {
    "English": "stop, stop all, stopall, stop it, stop now, stop messages, stop messaging me, stop texting me,"
    " stop sending, stop sending me messages, unsubscribe, unsubscribe me, unsub, cancel, end, quit, opt out, optout,"
    " opt me out, remove me, revoke",
    "Hebrew": "הסר, הסרה, הסירו, להסיר, תסיר, תסירו, הסר אותי, תסיר אותי, תסירו אותי, הסירו אותי, הפסק, הפסיקו, תפסיק,"
    " תפסיקו, להפסיק, עצור, עצרו, תעצור, סטופ, די",
    "Arabic": "توقف, توقفوا, أوقف, إيقاف, إلغاء, الغاء, إلغاء الاشتراك, الغاء الاشتراك, ألغ الاشتراك, قف, ستوب",
    "Spanish": "baja, darme de baja, dame de baja, dar de baja, parar, para, alto, detener, cancelar, no mas, basta,"
    " no mas mensajes",
    "French": "arret, arrêt, arrêter, arrêtez, stop, désabonner, me désabonner, désabonnement, désinscrire,"
    " désinscription, fin",
    "German": "stopp, stop, abmelden, abmeldung, abbestellen, austragen, aufhören, ende, keine nachrichten mehr",
    "Portuguese": "parar, pare, sair, cancelar, descadastrar, remover, me remova, cancelar inscrição, chega",
    "Russian": "стоп, отписаться, отписка, отпишите, отпишите меня, отмена, хватит, прекратите",
    "Ukrainian": "стоп, відписатися, відпишіть, скасувати",
    "Italian": "stop, basta, annulla, cancella, cancellami, disiscrivi, disiscrivimi, disiscrizione, ferma, smetti",
    "Dutch": "stop, stoppen, afmelden, uitschrijven, opzeggen, einde",
    "Turkish": "dur, durdur, iptal, ret, çık, çıkış, abonelikten çık, aboneliği iptal et, mesaj istemiyorum",
    "Polish": "stop, wypisz, wypisz mnie, rezygnuję, anuluj, koniec",
    "Romanian": "stop, dezabonare, dezabonează, anulează",
    "Swedish, Danish, Norwegian": "stopp, stop, avsluta, avregistrera, afmeld, frameld, avmeld, slutt",
    "Greek": "στοπ, διακοπή, διαγραφή",
    "Indonesian": "stop, berhenti, batal",
}

_COURTESIES = (
    "please, pls, plz, thanks, thank you, thx, kindly, por favor, gracias, s'il vous plaît, s'il te plaît, svp, stp,"
    " merci, bitte, danke, per favore, per piacere, grazie, alsjeblieft, alstublieft, aub, dank je, bedankt, lütfen,"
    " teşekkürler, por gentileza, obrigado, obrigada, пожалуйста, спасибо, будь ласка, дякую, בבקשה, נא, תודה, אנא,"
    " من فضلك, لو سمحت, رجاء, شكرا, proszę, dziękuję, vă rog, tack, tak, takk, παρακαλώ, tolong"
)

_LETTERS = str.maketrans({"ı": "i", "ø": "o", "ł": "l", "đ": "d", "ـ": "", "ى": "ي", "'": "", "’": "", "ʼ": ""})
"""What Unicode does not take apart; the Arabic stretching sign; the apostrophe, which joins rather than parts."""


def normalise(text: str) -> str:
    """Words as they are compared: lower case, no marks, one space between them."""
    folded = unicodedata.normalize("NFKC", text).casefold().translate(_LETTERS)
    return " ".join("".join(map(_letter, unicodedata.normalize("NFD", folded))).split())


def vocabulary(extra: Iterable[str] = ()) -> frozenset[str]:
    """Our words and those of a setting. One with no letter or digit in it is none."""
    ours = (word for words in _WORDS.values() for word in words.split(","))
    return frozenset(filter(None, map(normalise, (*ours, *extra))))


def says_stop(text: str, words: frozenset[str]) -> bool:
    """Whether the whole message is one of the words, said once or insistently, with or without a courtesy."""
    if len(text) > LONGEST:
        return False
    said = normalise(text)
    if said in words:
        return True
    said = _without_courtesies(said)
    parts = said.split()
    return said in words or (len(set(parts)) == 1 and parts[0] in words)


def _without_courtesies(said: str) -> str:
    shorter = said
    for courtesy in _NORMAL_COURTESIES:
        shorter = shorter.removeprefix(f"{courtesy} ").removesuffix(f" {courtesy}")
    return shorter if shorter == said else _without_courtesies(shorter)


def _letter(char: str) -> str:
    kind = unicodedata.category(char)
    if kind[0] in "LN" or kind == "Mc":
        return char
    # Marks and invisible characters vanish; a sign, a symbol or an emoji parts words as a space does.
    return "" if kind in ("Mn", "Me", "Cf") else " "


_NORMAL_COURTESIES = tuple(map(normalise, _COURTESIES.split(",")))
