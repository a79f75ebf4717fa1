"""A provider for the tests of flows: OpenAI's API on loopback, and config entries that use it."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from pytest_homeassistant_custom_component.common import MockConfigEntry

from custom_components.sash.const import DOMAIN, SUBENTRY_AI_TASK, SUBENTRY_CONVERSATION
from custom_components.sash.provider import provider_title, provider_unique_id
from tests.models.wire import Reply, Wire, said

KEY = "key-of-the-test"
SPOKEN_ROLES = said("Hi")


def models(*names: str) -> Reply:
    """The list of the models of a server."""
    listed = [{"id": name, "object": "model", "created": 1, "owned_by": "tests"} for name in names]
    return Reply(body={"object": "list", "data": listed})


@contextmanager
def openai_at(wire: Wire) -> Iterator[None]:
    """Let a server on loopback be OpenAI."""
    with patch("sash.models.openai.endpoint.OPENAI_URL", f"{wire.url}/v1"):
        yield


def compatible(wire: Wire, key: str | None = KEY) -> dict[str, Any]:
    """The data of an entry for a compatible server."""
    data = {"provider": "compatible", "api_base": f"{wire.url}/v1"}
    return data if key is None else {**data, "api_key": key}


def make_entry(data: dict[str, Any], **options: Any) -> MockConfigEntry:
    """Return an entry with an agent and an AI task, whose model is `m`."""
    options = {"model": "m", **options}
    return MockConfigEntry(
        domain=DOMAIN,
        title=provider_title(data),
        unique_id=provider_unique_id(data),
        data=data,
        subentries_data=[
            {"subentry_type": kind, "title": title, "data": options, "unique_id": None}
            for kind, title in ((SUBENTRY_CONVERSATION, "Sash"), (SUBENTRY_AI_TASK, "Sash AI Task"))
        ],
    )


def get_paths(wire: Wire) -> list[str]:
    """Return the paths that a server was asked for, without their queries."""
    return [request.path.partition("?")[0] for request in wire.requests]
