"""The texts of the integration: all languages have the same keys and placeholders, and no field lacks one."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hass_frontend
import pytest
import yaml

import custom_components.sash
from custom_components.sash import config_flow, option_checks, provider, subentry_flow
from custom_components.sash.config_flow import CONTROLS
from custom_components.sash.const import (
    EVERYDAY_SERVICES,
    OTHER_SERVICES,
    PROVIDER_LOCAL,
    PROVIDERS,
    REASONING_EFFORTS,
    SESSION_SCOPES,
    SUBENTRY_AI_TASK,
    SUBENTRY_CONVERSATION,
)
from custom_components.sash.option_forms import OptionForm

FOLDER = Path(custom_components.sash.__file__).parent / "translations"
LANGUAGES = ("de", "en", "es", "fr", "it", "nl")
PLACEHOLDER = re.compile(r"\{(\w+)\}")


def read(language: str) -> dict[str, Any]:
    return json.loads((FOLDER / f"{language}.json").read_text())


def read_icons() -> dict[str, Any]:
    return json.loads((FOLDER.parent / "icons.json").read_text())


def flatten(tree: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    for key, value in tree.items():
        if isinstance(value, dict):
            yield from flatten(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def find_steps(tree: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the steps and the sections of all flows."""
    flows = {"config": tree["config"], **tree["config_subentries"]}
    for flow, texts in flows.items():
        for step, step_texts in texts["step"].items():
            yield f"{flow}.{step}", step_texts
            for section, section_texts in step_texts.get("sections", {}).items():
                yield f"{flow}.{step}.{section}", section_texts


def test_there_are_six_languages() -> None:
    assert sorted(file.stem for file in FOLDER.glob("*.json")) == sorted(LANGUAGES)


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_language_has_all_texts_with_their_placeholders(language: str) -> None:
    english, texts = dict(flatten(read("en"))), dict(flatten(read(language)))
    assert texts.keys() == english.keys()
    for key, text in texts.items():
        assert sorted(PLACEHOLDER.findall(text)) == sorted(PLACEHOLDER.findall(english[key])), key
        assert text == text.strip() != "", key
        assert "'{" not in text and "://" not in text and "<" not in text, key


@pytest.mark.parametrize("language", [each for each in LANGUAGES if each != "en"])
def test_a_language_is_not_english(language: str) -> None:
    """A text of three words or more that is the same in two languages was forgotten."""
    english, texts = dict(flatten(read("en"))), dict(flatten(read(language)))
    forgotten = [key for key, text in texts.items() if text == english[key] and len(text.split()) > 2]
    assert forgotten == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_field_has_a_label_and_a_description(language: str) -> None:
    steps = dict(find_steps(read(language)))
    for name, texts in steps.items():
        assert texts.get("data", {}).keys() == texts.get("data_description", {}).keys(), name
        assert texts.get("menu_options", {}).keys() == texts.get("menu_option_descriptions", {}).keys(), name


@pytest.mark.parametrize("kind", [SUBENTRY_CONVERSATION, SUBENTRY_AI_TASK])
def test_the_forms_and_the_texts_have_the_same_fields(kind: str) -> None:
    texts = read("en")["config_subentries"][kind]["step"]["init"]
    form = OptionForm(kind)
    assert texts["data"].keys() == {"name", *form.fields}
    assert texts["sections"].keys() == form.sections.keys()
    for section, fields in form.sections.items():
        assert texts["sections"][section]["data"].keys() == set(fields)
        assert texts["sections"][section]["name"] and texts["sections"][section]["description"]


def test_menus_steps_and_choices_have_texts() -> None:
    texts = read("en")
    steps = texts["config"]["step"]
    for menu in ("user", "reconfigure"):
        assert list(steps[menu]["menu_options"]) == sorted(PROVIDERS)
    assert steps.keys() >= {each for each in PROVIDERS if each != PROVIDER_LOCAL}
    shown = {name: list(each["options"]) for name, each in texts["selector"].items()}
    assert shown["control"] == sorted(CONTROLS)
    assert shown["session_scope"] == sorted(SESSION_SCOPES)
    assert shown["reasoning_effort"] == sorted(REASONING_EFFORTS)
    assert shown["services"] == sorted({*EVERYDAY_SERVICES, *OTHER_SERVICES})


def test_every_error_of_a_flow_has_a_text_and_every_text_an_error() -> None:
    texts = read("en")
    known = set(texts["config"]["error"])
    for kind in (SUBENTRY_CONVERSATION, SUBENTRY_AI_TASK):
        known |= set(texts["config_subentries"][kind]["error"])
    sources = "".join(
        Path(module.__file__ or "").read_text()
        for module in (config_flow, option_checks, provider, subentry_flow, OptionForm)
        if hasattr(module, "__file__")
    )
    sources += (FOLDER.parent / "option_forms.py").read_text()
    assert {key for key in known if f'"{key}"' not in sources} == set()
    raised = set(re.findall(r'^ERROR_\w+ = "(\w+)"', sources, re.MULTILINE))
    raised |= set(re.findall(r'FieldError\(\w+, "(\w+)"', sources))
    raised |= set(re.findall(r'CheckResult\("(\w+)"', sources))
    assert raised - known == set()


def test_services_have_texts_and_icons() -> None:
    texts = read("en")["services"]
    described = yaml.safe_load((FOLDER.parent / "services.yaml").read_text())
    assert described.keys() == texts.keys() == read_icons()["services"].keys()
    for name, service in described.items():
        assert texts[name]["name"] and texts[name]["description"]
        assert (service or {}).get("fields", {}).keys() == texts[name].get("fields", {}).keys(), name
        assert all(field["name"] and field["description"] for field in texts[name].get("fields", {}).values())


def test_every_translation_key_of_the_code_has_a_text() -> None:
    texts = read("en")
    known = {key for entities in texts["entity"].values() for key in entities}
    known |= {*texts["exceptions"], *texts["issues"], *texts["selector"]}
    files = FOLDER.parent.rglob("*.py")
    key_in_code = re.compile(r'(?:translation_key=|TaskFailed\(\s*|InvalidAnswer\(|cls\()"(\w+)"')
    used = {key for file in files for key in key_in_code.findall(file.read_text())}
    assert used - known == set()
    assert read_icons()["entity"]["sensor"].keys() <= texts["entity"]["sensor"].keys()


def test_icons_exist() -> None:
    listed = json.loads((Path(hass_frontend.where()) / "static" / "mdi" / "iconList.json").read_text())
    known = {f"mdi:{icon['name']}" for icon in listed}
    assert {icon for _, icon in flatten(read_icons())} <= known
