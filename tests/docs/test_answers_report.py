"""The report of the benchmark of answers."""

import json
from io import StringIO

from rich.console import Console

from benchmarks._answers_report import OWN_AGENT, SASH, HouseResult, Said, show, write_json, write_markdown
from tests.answers.sash_talk import TurnTimes
from tests.answers.table import read_cases

ONE, TWO = [case for case in read_cases() if case.kind == "follow_ups"][:2]


def make_result():
    times = TurnTimes([4.0, 2.0, 9.0], [1.0, 1.5, 3.0])
    good, bad = Said(ONE, "Done.", None), Said(TWO, "No [idea].", "did nothing")
    said = {SASH: [good, bad], OWN_AGENT: [Said(ONE, "", "says nothing"), bad]}
    broken = [Said(ONE, "Sorry.", "says 'sorry'"), bad]
    return HouseResult("ha", said, times, 12.0, 3, frozenset({"light.lamp"}), broken)


def test_the_markdown_has_both_agents_and_keeps_the_text_above_the_results(tmp_path):
    file = tmp_path / "answers.md"
    file.write_text("# Title\n\nWords of a person.\n\n## Results\n\nold\n")
    for _ in range(2):
        write_markdown(file, [make_result()])
    text = file.read_text()
    assert text.startswith("# Title\n\nWords of a person.\n\n## Results\n\n") and "old" not in text
    assert "| kind | sentences | Sash | Home Assistant |" in text
    assert text.count("| follow ups | 2 | 1/2 · 50% | 0/2 · 0% |") == 1
    assert "a local turn 4.0 ms, of which 1.5 ms" in text
    assert "3 sentences were left out" in text
    assert "Without its follow-ups, Sash gives 1 more answers that are wrong." in text


def test_the_json_names_the_faults_of_each_agent(tmp_path):
    write_json(tmp_path / "answers.json", [make_result()])
    found = json.loads((tmp_path / "answers.json").read_text())["ha"]
    assert found["faults"][SASH] == {TWO.id: "did nothing"}
    assert found["faults"][OWN_AGENT] == {ONE.id: "says nothing", TWO.id: "did nothing"}
    assert found["broken_without_follow_ups"] == [ONE.id]
    assert (found["sentences"], found["skipped"], found["turn_ms"]) == (2, 3, 4.0)


def test_the_wrong_answers_of_both_agents_are_shown_side_by_side():
    console = Console(record=True, width=200, file=StringIO())
    show(console, make_result(), failed=True)
    text = console.export_text()
    assert f"follow_ups {ONE.id}" in text and "Sash: 'Done.' good" in text
    assert "Home Assistant: '' says nothing" in text and "'No [idea].' did nothing" in text
    assert "not restored between sentences: light.lamp" in text
