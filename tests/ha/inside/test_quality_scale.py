"""`quality_scale.yaml` has every rule of Home Assistant, and what it calls done is there."""

import json
import re
from pathlib import Path
from typing import Any

import homeassistant.components
import pytest
import yaml

import custom_components.sash
from custom_components.sash.config_flow import SashConfigFlow
from custom_components.sash.const import AGENT_DEFAULTS, AI_TASK_DEFAULTS

FOLDER = Path(custom_components.sash.__file__).parent
# An integration of Home Assistant whose file has all rules.
MODEL = Path(homeassistant.components.__path__[0]) / "openai_conversation" / "quality_scale.yaml"
DOCS = Path(__file__).parents[3] / "docs" / "home-assistant.md"
PLATFORMS = ("ai_task", "conversation", "sensor")
# The words that the source of a module must have for a rule, by module.
EVIDENCE = {
    "action-setup": ("__init__.py", r"async def async_setup\("),
    "config-entry-unloading": ("__init__.py", r"async def async_unload_entry\("),
    "diagnostics": ("diagnostics.py", r"async def async_get_config_entry_diagnostics\("),
    "entity-category": ("sensor.py", r"EntityCategory\.DIAGNOSTIC"),
    "entity-device-class": ("sensor.py", r"device_class="),
    "entity-disabled-by-default": ("sensor.py", r"entity_registry_enabled_default=False"),
    "entity-translations": ("sensor.py", r"translation_key="),
    "inject-websession": ("provider.py", r"http_client=get_async_client\(hass\)"),
    "repair-issues": ("repairs.py", r"async def async_create_fix_flow\("),
    "runtime-data": ("__init__.py", r"entry\.runtime_data = "),
    "test-before-configure": ("config_flow.py", r"await check_provider\("),
    "test-before-setup": ("__init__.py", r"raise ConfigEntryNotReady"),
    "unique-config-entry": ("config_flow.py", r"await self\.async_set_unique_id\("),
}


# What the documentation must have for a rule.
SECTIONS = {
    "docs-actions": r"^## Services$",
    "docs-configuration-parameters": r"^## Options$",
    "docs-data-update": r"They are read from the database after each turn",
    "docs-examples": r"^```yaml$",
    "docs-high-level-description": r"^Sash is a conversation agent",
    "docs-installation-instructions": r"^## Installation$",
    "docs-installation-parameters": r"^### Providers$",
    "docs-known-limitations": r"^## Limitations$",
    "docs-removal-instructions": r"^## Removal$",
    "docs-supported-functions": r"^## Sensors$",
    "docs-troubleshooting": r"^## Troubleshooting$",
    "docs-use-cases": r"^## Use cases$",
}


def read_rules(file: Path) -> dict[str, Any]:
    return yaml.safe_load(file.read_text())["rules"]


RULES = read_rules(FOLDER / "quality_scale.yaml")
DONE = {name for name, rule in RULES.items() if rule == "done" or rule["status"] == "done"}


def test_every_rule_of_home_assistant_has_a_status() -> None:
    assert RULES.keys() == read_rules(MODEL).keys()
    for name, rule in RULES.items():
        status, comment = (rule, "") if isinstance(rule, str) else (rule["status"], rule.get("comment", ""))
        assert status in ("done", "todo", "exempt"), name
        assert comment or status == "done", f"{name} needs a reason"


def test_a_vendored_core_is_not_called_transparent() -> None:
    assert RULES["dependency-transparency"]["status"] == "todo"


@pytest.mark.parametrize("rule", sorted(EVIDENCE))
def test_a_rule_that_is_done_has_its_code(rule: str) -> None:
    file, pattern = EVIDENCE[rule]
    assert rule in DONE
    assert re.search(pattern, (FOLDER / file).read_text())


@pytest.mark.parametrize("platform", PLATFORMS)
def test_every_platform_keeps_the_rules_of_entities(platform: str) -> None:
    source = (FOLDER / f"{platform}.py").read_text()
    assert {"parallel-updates", "has-entity-name", "entity-unique-id", "devices"} <= DONE
    assert re.search(r"^PARALLEL_UPDATES = \d", source, re.MULTILINE)
    assert "_attr_has_entity_name = True" in source
    assert "_attr_unique_id = " in source
    assert "_attr_device_info = " in source


def test_the_flow_has_the_steps_that_are_called_done() -> None:
    assert {"reauthentication-flow", "reconfiguration-flow"} <= DONE
    assert SashConfigFlow.async_step_reauth and SashConfigFlow.async_step_reconfigure


def test_icons_and_brand_images_are_there() -> None:
    assert {"icon-translations", "brands"} <= DONE
    icons = json.loads((FOLDER / "icons.json").read_text())
    assert icons["services"] and icons["entity"]["sensor"]
    assert (FOLDER / "brand" / "icon.png").is_file()


def test_the_manifest_claims_no_level() -> None:
    """Levels are for the integrations of Home Assistant itself."""
    assert "quality_scale" not in json.loads((FOLDER / "manifest.json").read_text())


@pytest.mark.parametrize("rule", sorted(name for name in RULES if name.startswith("docs-")))
def test_documentation_that_is_called_done_is_there(rule: str) -> None:
    assert rule in SECTIONS or RULES[rule]["status"] == "exempt"
    if rule in SECTIONS:
        assert rule in DONE
        assert re.search(SECTIONS[rule], DOCS.read_text(), re.MULTILINE)


def test_the_documentation_has_every_option_of_its_own() -> None:
    """The others are in `docs/settings.md`, with the same names."""
    pages = DOCS.read_text() + DOCS.with_name("settings.md").read_text()
    assert [name for name in (*AGENT_DEFAULTS, *AI_TASK_DEFAULTS) if f"`{name}`" not in pages] == []
