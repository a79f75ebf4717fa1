"""Questions about old messages: their words, speakers, times and languages."""

from datetime import UTC, datetime

import pytest

from sash.memory.recall_lexicon import LANGUAGES, choose_language, load_recall_lexicon
from sash.memory.recall_question import MAX_CHARS, cut_question, find_question, is_asking, read_question

NOW = datetime(2026, 6, 10, 15, tzinfo=UTC)


def words(text, **options):
    return [word.forms[0] for word in read_question(text, **options).words]


def period(text, language=None):
    found = read_question(text, language=language, now=NOW).period
    return found and tuple(
        datetime.fromtimestamp(at, UTC).date().isoformat() for at in (found.start, found.end)
    )


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("What did I say about the kitchen boiler, please?", ["kitc*", "boil*"]),
        ("Which error code did it show: E-500?", ["err*", "code*", "show", "500"]),
        ("is it on?", []),
        ("Was hat die Wärmepumpenwartung gekostet?", ["warmepumpenwart*", "gekos*"]),
        ("Où as-tu rangé la perceuse ?", ["ran*", "perce*"]),
    ],
)
def test_only_words_with_a_topic_are_looked_for(text, found):
    read = words(text)
    assert len(read) == len(found)
    assert all(one[:3] == two[:3] for one, two in zip(read, found, strict=True))


def test_a_word_is_found_by_its_beginning_or_by_its_irregular_forms():
    [bought, cabinet] = read_question("who bought the cabinets").words
    assert {"buy", "buys", "bought"} <= set(bought.forms)
    assert cabinet.forms == ("cabin*",)
    assert read_question("car").words[0].forms[0] == "car", "a short word is no beginning"


def test_a_speaker_who_is_named_is_told_from_i_and_you():
    assert read_question("what does Ida like?", names=("Ida", "Paul"), asker="Paul").named == {"Ida"}
    for text in ("what does Paul like?", "what do I like?", "what do you like?", "what is liked?"):
        assert not read_question(text, names=("Ida", "Paul"), asker="Paul").named, text


def test_names_are_speakers_and_words_only_if_nothing_else_is_asked():
    asked = read_question("what did Ida want for dinner", names=("Ida", "Paul"))
    assert asked.said_by == "Ida"
    assert not any("ida" in word.forms for word in asked.words)
    assert words("what did Ida say?", names=("Ida",)) == ["ida"]


def test_i_and_you_are_the_asker_and_the_agent():
    assert read_question("what did I pay for the wheel", asker="Paul").said_by == "Paul"
    assert read_question("was hast du zum Zaun gesagt").said_by == "assistant"
    assert read_question("did I ask you about the fence").said_by is None
    assert read_question("what did Ida and Paul say?", names=("Ida", "Paul")).named == {"Ida", "Paul"}


def test_a_name_may_have_the_ending_of_a_genitive():
    asked = read_question("was ist Jörgs Schuhgröße", names=("Jörg", "Jonas"))
    assert (asked.named, [word.text for word in asked.words]) == ({"Jörg"}, ["schuhgroße"])
    assert read_question("what size are Jonas's shoes", names=("Jörg", "Jonas")).named == {"Jonas"}


def test_a_question_about_the_past_of_a_person_may_have_common_words_only():
    assert read_question("when did Ida lose her job", names=("Ida",)).telling
    assert not read_question("when did I lose my job").telling


def test_words_of_every_day_do_not_tell():
    asked = read_question("what did the car cost at the garage")
    telling = {asked.words[n].forms[0] for n in asked.telling}
    assert "gara*" in telling
    assert "car" not in telling


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_language_knows_its_own_words(language):
    lexicon = load_recall_lexicon(language)
    assert not lexicon.stop & lexicon.common
    assert set(lexicon.months.values()) == set(range(1, 13))
    assert set(lexicon.weekdays.values()) == set(range(7))
    assert choose_language(sorted(lexicon.stop)[:80], None) in LANGUAGES


def test_the_language_is_that_of_the_small_words():
    assert choose_language(["was", "hat", "der", "zaun", "gekostet"], "en") == "de"
    assert choose_language(["boiler"], "de") == "de"
    assert choose_language(["boiler"], "sv") == "en"


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("what did we cook yesterday", ("2026-06-09", "2026-06-10")),
        ("what did we say last week about the car", ("2026-06-01", "2026-06-08")),
        ("who called two weeks ago", ("2026-05-23", "2026-05-31")),
        ("what did the vet say in March", ("2026-03-01", "2026-04-01")),
        ("what happened on 3 April", ("2026-04-03", "2026-04-04")),
        ("what did I plan in December", ("2025-12-01", "2026-01-01")),
        ("who came last Saturday", ("2026-06-06", "2026-06-07")),
        ("where were we at Easter", ("2026-04-05", "2026-04-07")),
        ("what did you tell me 3 days ago", ("2026-06-07", "2026-06-08")),
        ("was habe ich vor zwei Tagen über den Zaun gesagt", ("2026-06-08", "2026-06-09")),
        ("was war letzten Monat mit dem Auto", ("2026-05-01", "2026-06-01")),
        ("was haben wir an Ostern gekocht", ("2026-04-05", "2026-04-07")),
        ("que disait le plombier en mars", ("2026-03-01", "2026-04-01")),
        ("¿qué dijo el médico ayer?", ("2026-06-09", "2026-06-10")),
        ("cosa ha detto il dottore la settimana scorsa", ("2026-06-01", "2026-06-08")),
        ("wat zei de loodgieter vorige maand", ("2026-05-01", "2026-06-01")),
        ("what did we decide on 2026-04-03", ("2026-04-03", "2026-04-04")),
        ("was war am 3.4. mit dem Zaun", ("2026-04-03", "2026-04-04")),
        ("was war am 3.12. mit dem Zaun", ("2025-12-03", "2025-12-04")),
        ("was war am 3.4.2024 mit dem Zaun", ("2024-04-03", "2024-04-04")),
        ("qu'avons-nous dit le 1er avril", ("2026-04-01", "2026-04-02")),
        ("what did the vet say on April 3rd", ("2026-04-03", "2026-04-04")),
        ("what did the fence cost in 2024", ("2024-01-01", "2025-01-01")),
        ("what broke in the last three weeks", ("2026-05-20", "2026-06-10")),
        ("was ging in den letzten 3 Tagen kaputt", ("2026-06-07", "2026-06-10")),
        ("qué dijimos en los últimos dos meses", ("2026-04-01", "2026-06-10")),
        ("did Sunny march in the sun", None),
        ("what is 12.3. times 2024", None),
        ("may I ask about the fence", None),
        ("what did the fence cost", None),
        ("what happened 99999999999 days ago", None),
    ],
)
def test_a_question_may_name_a_time(text, days):
    assert period(text) == days


def test_the_words_of_a_time_are_not_looked_for():
    assert words("what did the vet say in March", now=NOW) == ["vet"]
    assert words("what did the vet say on April 3rd", now=NOW) == ["vet"]
    assert words("what did the vet say on 2026-04-03", now=NOW) == ["vet"]


def test_a_weekday_may_also_be_the_topic():
    assert words("which pizza did I want on Monday", now=NOW)[-1] == "mond*"
    assert not words("what did we say on Monday", now=NOW)


def test_a_text_without_blanks_may_have_more_pairs_of_letters_than_words():
    asked = read_question("先月、お母さんが私たちに勧めてくれたレストランの名前は何でしたか")
    assert {"レス", "名前"} <= {word.text for word in asked.words}
    assert len(read_question(" ".join(f"word{n}" for n in range(30))).words) == 12


def test_a_question_is_told_by_its_mark_its_first_word_or_a_reference_to_the_past():
    assert is_asking("The boiler? Was it loud?")
    assert is_asking("what did the boiler show")
    assert is_asking("the boiler that you told me about, do you remember")
    assert is_asking("and where is the key")
    assert not is_asking("and I was in the garden")
    assert not is_asking("The boiler is loud again.")
    assert not is_asking("turn on the light")


def test_only_the_question_of_a_message_is_looked_for():
    assert cut_question("I am home. It is late. Who called?") == "Who called?"
    assert cut_question("no question here") == "no question here"
    assert cut_question("Version 2.5? Yes.") == "Version 2.5?"


def test_a_very_long_message_is_read_in_part():
    asked = read_question("boiler " * 100_000 + "fence?")
    assert len(asked.words) == 1


@pytest.mark.parametrize(
    ("text", "cut"),
    [
        (
            "Hi. Wie viel hat die Reparatur am 3. April gekostet?",
            "Wie viel hat die Reparatur am 3. April gekostet?",
        ),
        ("What did Dr. Smith say about the knee?", "What did Dr. Smith say about the knee?"),
        (
            "Where did Mum put the keys, e.g. the spare ones?",
            "Where did Mum put the keys, e.g. the spare ones?",
        ),
        ("The boiler is loud again. Who repaired it?", "Who repaired it?"),
    ],
)
def test_an_abbreviation_and_a_number_end_no_sentence(text, cut):
    assert cut_question(text).endswith(cut)


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("Who called from 03012345678 May 2?", ("2026-05-02", "2026-05-03")),
        ("0310000000000000000000 april", ("2026-04-01", "2026-05-01")),
        ("what was in March 2023", ("2023-03-01", "2023-04-01")),
        ("what did we plan on 30 June", ("2025-06-30", "2025-07-01")),
        ("what was on 29 February", ("2026-02-01", "2026-03-01")),
        ("what was on 1 January 2024", ("2024-01-01", "2024-01-02")),
    ],
)
def test_odd_dates_are_read_or_left(text, days):
    assert period(text) == days


def test_a_feast_and_a_topic_are_looked_for_and_relative_times_are_not():
    assert words("what did we want for Christmas?", now=NOW) != []
    assert words("what did we say two weeks ago", now=NOW) == []


def test_a_tag_of_a_region_is_its_language():
    assert choose_language(["kuchen"], "de-AT") == choose_language(["kuchen"], "DE") == "de"


def test_short_words_have_their_plural():
    assert set(read_question("the key").words[0].forms) >= {"key", "keys"}
    assert "key" in read_question("the keys").words[0].forms


def test_words_of_other_scripts_have_no_marks():
    assert words("чайник") == ["чаин*"]
    assert words("Αθήνα") == ["αθην*"]
    assert words("बिजली का बिल") == words("बजल क बल")


def test_text_without_blanks_is_asked_for_by_pairs_of_letters():
    assert words("厨房的灯坏了吗？") == ["厨房", "房的", "的灯", "灯坏", "坏了", "了吗"]
    assert words("灯") == ["灯*"]
    assert words("TV灯") == ["tv", "灯*"]
    assert is_asking("灯坏了吗？")


@pytest.mark.parametrize(
    "text",
    [
        "in which year did we move",
        "bei welchem Arzt waren wir",
        "the lentil soup, how much stock",
        "das Rezept von Oma, wieviel Mehl",
    ],
)
def test_a_question_without_a_mark_begins_with_its_word_or_after_a_comma(text):
    assert is_asking(text)


@pytest.mark.parametrize("text", ["turn on the lamp, please", "he has a boiler", "the boiler, which leaks"])
def test_other_sentences_ask_nothing(text):
    assert not is_asking(text)


def test_a_question_with_a_time_and_no_topic_is_about_the_time():
    assert read_question("what did we talk about yesterday?", now=NOW).is_about_time
    assert not read_question("what did we say about the boiler yesterday?", now=NOW).is_about_time
    assert not read_question("what did we talk about?", now=NOW).is_about_time


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("what did we say since March?", ("2026-03-01", "2026-06-10")),
        ("was haben wir seit letzter Woche gesagt", ("2026-06-01", "2026-06-10")),
        ("what did we do in the summer of 2024", ("2024-06-01", "2024-09-01")),
        ("what did we say in March last year", ("2025-03-01", "2025-04-01")),
        ("what did we say in March", ("2026-03-01", "2026-04-01")),
    ],
)
def test_a_time_may_last_until_now_and_name_its_year(text, found):
    assert period(text) == found


@pytest.mark.parametrize(
    "text",
    [
        "Who fixed the boiler?",
        "Which plumber installed the heating?",
        "Combien a coûté la réparation de la chaudière ?",
        "Qui a réparé la chaudière ?",
        "¿Quién reparó la caldera?",
        "¿De qué color pintamos el cuarto?",
        "Quanto è costato l'idraulico?",
        "Hoeveel kostte de loodgieter?",
        "Wie hieß der Klempner?",
    ],
)
def test_verbs_of_the_past_are_known_in_every_language(text):
    assert read_question(text).looks_back


@pytest.mark.parametrize(
    "text",
    ["which door is locked?", "what is needed for dinner?", "Is the boiler fixed?", "Ist das Licht an?"],
)
def test_the_present_is_no_past(text):
    assert not read_question(text).looks_back


def test_ordinary_words_in_names_are_no_speakers():
    asked = read_question("Was hat der Elektriker gesagt?", names=("Anna von der Heide",))
    assert not asked.named
    asked = read_question("Was hat Anna gesagt?", names=("Anna von der Heide",))
    assert asked.said_by == "Anna von der Heide"
    assert len(read_question("the kitchen cupboard", names=("Kitchen",)).words) == 2


def test_a_question_at_either_end_of_a_long_message_is_found():
    long = "The invoice says many things. " * 200
    assert find_question(f"{long} What did the plumber say?") == "What did the plumber say?"
    assert find_question(f"What did the plumber say? {long}") == "What did the plumber say?"
    assert len(find_question(long)) <= MAX_CHARS
