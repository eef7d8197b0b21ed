"""Which messages say stop: the whole message does, in whatever dress; a sentence with the word in it does not."""

import pytest

from paceline.policy.stopwords import LONGEST, normalise, says_stop, vocabulary

WORDS = vocabulary()


@pytest.mark.parametrize(
    "text",
    [
        *("stop", "unsubscribe", "cancel", "end", "quit", "opt out", "remove me"),
        *("הסר", "הפסק", "עצור", "תסירו אותי"),
        *("توقف", "إلغاء", "الغاء", "إلغاء الاشتراك"),
        *("baja", "parar", "alto"),
        *("arret", "arrêt", "stop", "désabonner"),
        *("stopp", "abmelden"),
        *("sair", "cancelar", "parar"),
        *("стоп", "отписаться"),
        *("basta", "annulla", "disiscrivimi"),
        *("afmelden", "uitschrijven"),
        *("iptal", "durdur", "çıkış"),
    ],
)
def test_a_word_of_each_language(text: str) -> None:
    assert says_stop(text, WORDS)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("STOP", id="capitals"),
        pytest.param("  Stop!!! ", id="punctuation around it"),
        pytest.param("*stop*", id="bold"),
        pytest.param("«Стоп»", id="quotes"),
        pytest.param("🛑 STOP 🙏🏽", id="emoji, with a skin tone"),
        pytest.param("ＳＴＯＰ", id="full width"),
        pytest.param("s\u200bt\u200do\ufeffp", id="zero-width characters"),
        pytest.param("\u202estop\u202c", id="direction marks"),
        pytest.param("STO\u0301P", id="a stray accent"),
        pytest.param("הָסֵר", id="Hebrew points"),
        pytest.param("تَوَقَّف", id="Arabic vowels"),
        pytest.param("توقـــف", id="Arabic stretching"),
        pytest.param("DÉSABONNER", id="accents"),
        pytest.param("İPTAL", id="a Turkish dotted I"),
        pytest.param("IPTAL", id="a plain I for it"),
        pytest.param("ÇIKIŞ", id="a Turkish dotless I"),
        pytest.param("stop.\n", id="a line break"),
        pytest.param("Stop stop STOP", id="insistent"),
        pytest.param("please stop", id="please before"),
        pytest.param("Stop, please.", id="please after"),
        pytest.param("please please stop thanks", id="very polite"),
        pytest.param("S'il vous plaît, arrêtez", id="polite in French"),
        pytest.param("הסר בבקשה", id="polite in Hebrew"),
        pytest.param("Bitte abmelden", id="polite in German"),
    ],
)
def test_in_any_dress_it_is_the_same_word(text: str) -> None:
    assert says_stop(text, WORDS)


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "🛑", "...", "please", "thank you", "1"),
        *("don't stop", "don’t stop please", "do not stop", "never stop"),
        *("which bus stop?", "stop by tomorrow", "I cannot stop laughing", "stop 2", "nonstop", "the end"),
        *("quiero darme de alta", "no quiero parar", "לא להסיר", "unstoppable", "stopstop"),
        "stop " * 100,
        "stop" + " " * LONGEST,
    ],
)
def test_anything_else_is_not_an_opt_out(text: str) -> None:
    assert not says_stop(text, WORDS)


def test_a_setting_adds_words_and_they_are_compared_alike() -> None:
    words = vocabulary(["Adiós", " ", "", "!!!", "no quiero más"])
    assert says_stop("ADIOS!", words)
    assert says_stop("No quiero mas, gracias", words)
    assert says_stop("stop", words)
    assert not says_stop("", words)
    assert not says_stop("!!!", words)
    assert not says_stop("adios", WORDS)


def test_every_word_of_ours_says_stop_and_no_courtesy_does() -> None:
    assert all(says_stop(word, WORDS) for word in WORDS)
    assert "" not in WORDS
    assert normalise("Tack så mycket!") == "tack sa mycket"
