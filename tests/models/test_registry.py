"""The registry turns the settings into a model."""

import sys

import pytest

from sash.app.settings import Settings
from sash.errors import InvalidConfig
from sash.models.offline import OfflineModel
from sash.models.openai.model import OpenAIModel
from sash.models.registry import create_model


def test_without_a_name_it_is_the_offline_model():
    assert isinstance(create_model(Settings()), OfflineModel)


@pytest.mark.parametrize(
    ("setting", "name"), [("gpt-5-mini", "gpt-5-mini"), ("qwen3:8b", "qwen3:8b"), ("openai:gpt-5", "gpt-5")]
)
def test_a_name_without_a_known_provider_belongs_to_openai(setting, name):
    model = create_model(Settings(model=setting))
    assert isinstance(model, OpenAIModel)
    assert (model.name, model.mode) == (name, "responses")


def test_a_provider_reads_its_own_settings():
    assert create_model(Settings(model="m", api_base="http://localhost:11434/v1")).mode == "chat"
    assert create_model(Settings(model="m", api_mode="chat")).mode == "chat"
    azure = Settings(model="m", azure_endpoint="https://x", api_version="1")
    assert create_model(azure).mode == "chat"


def test_missing_packages_are_named_with_the_remedy(monkeypatch):
    monkeypatch.setitem(sys.modules, "sash.models.openai.model", None)
    with pytest.raises(InvalidConfig, match=r"pip install 'sash\[openai\]'"):
        create_model(Settings(model="gpt-5-mini"))
