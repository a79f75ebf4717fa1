"""Names of people and places in a text."""

import pytest

from sash.memory.proper_names import find_names


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("my sister Ada Brightwell and Tom live in Leeds now", ["Ada Brightwell", "Tom", "Leeds"]),
        ("We saw Dr. Lindqvist at eleven. She was kind", ["Dr. Lindqvist"]),
        ("Frau Meier-Schulz hat den Hund von Herrn Krause gesehen", ["Frau Meier-Schulz", "Herrn Krause"]),
        ("Der Hund hat heute das Futter und die Leine im Garten vergessen", []),
        ("The kitchen is warm. Turn it off. I'm tired, I think", []),
        ("я была дома вчера и видела Машу", ["Машу"]),
        ("Hier elle a vu Madame Dupont, mais Paul était content", ["Madame Dupont", "Paul"]),
        ("we sat in the den with Anna Smith", ["Anna Smith"]),
        ("x" * 50_000, []),
    ],
)
def test_names_of_people_and_places_are_found(text, names):
    assert find_names(text) == names


@pytest.mark.parametrize(
    "text", ["{} came", "I saw {}.", "It rains; {} is late", "they met ({}) there", "ask: {}!"]
)
@pytest.mark.parametrize(
    "name",
    [
        *(
            "María José García Márquez",
            "J. R. R. Tolkien",
            "J.R.R. Tolkien",
            "George R. R. Martin",
            "Conan O'Brien",
        ),
        *("Karl-Theodor zu Guttenberg", "Vincent van Gogh", "Jan van der Berg", "Ursula von der Leyen"),
        *(
            "Anna-Lena Müller",
            "Rio de Janeiro",
            "Łukasz Żak",
            "Иван Петрович Сидоров",
            "Prof. Dr. Anna Meier",
        ),
    ],
)
def test_a_name_of_several_words_stays_whole_wherever_it_stands(name, text):
    assert find_names(text.format(name)) == [name]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("das Buch von Karl-Theodor zu Guttenberg ist nicht gut", ["Karl-Theodor zu Guttenberg"]),
        ("Der Hund ist da und die Katze; Anna-Lena Müller kam", ["Anna-Lena Müller"]),
        ("Is Tom at home? In Leeds it rains", ["Tom", "Leeds"]),
        ("Tom's dog and Eva's cat", ["Eva"]),
        ("we watch Babette's Feast. It's Biscuit", ["Babette's Feast", "Biscuit"]),
        ("open Main.py and x.Tom", []),
        ("Guten Morgen! Alle Lichter sind aus.", []),
    ],
)
def test_common_words_and_parts_of_other_words_are_no_names(text, names):
    assert find_names(text) == names
