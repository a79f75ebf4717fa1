"""The protocol's own conformance suite against a real server: scenarios that pass today must pass tomorrow.

Some scenarios need tools, prompts and resources of the suite's own server. Sash has none of these, so these
scenarios report that they cannot be tested. The lists below are exact: a scenario that starts to fail, or
disappears, fails the test.
"""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from sash.demo.demo_home import demo_home
from sash.server.mcp import agent_tools
from sash.values.clock import SystemClock
from tests.mcp_clients.node import Check, Clients, Revision, Scenario
from tests.mcp_clients.suited import DELETE, SUITED_TOOLS, ObedientModel
from tests.surfaces.serving import Served, serving

PASS = {
    "2026-07-28": {
        "caching",
        "completion-complete",
        "dns-rebinding-protection",
        "http-header-validation",
        "input-required-result-ignore-extra-params",
        "input-required-result-missing-input-response",
        "input-required-result-unsupported-methods",
        "input-required-result-validate-input",
        "prompts-list",
        "resources-list",
        "sep-2164-resource-not-found",
        "server-sse-multiple-streams",
        "tasks-status-notifications",
        "tools-list",
    },
    "2025-11-25": {
        "completion-complete",
        "dns-rebinding-protection",
        "ping",
        "prompts-list",
        "resources-list",
        "server-initialize",
        "server-session-lifecycle",
        "server-sse-multiple-streams",
        "server-sse-polling",
        "tools-list",
    },
}
CANNOT_BE_TESTED_EVER = {
    "json-schema-2020-12",
    "prompts-get-embedded-resource",
    "prompts-get-simple",
    "prompts-get-with-args",
    "prompts-get-with-image",
    "resources-read-binary",
    "resources-read-text",
    "resources-templates-read",
    "tools-call-audio",
    "tools-call-embedded-resource",
    "tools-call-error",
    "tools-call-image",
    "tools-call-mixed-content",
    "tools-call-simple-text",
    "tools-call-with-progress",
}
CANNOT_BE_TESTED = {
    "2026-07-28": CANNOT_BE_TESTED_EVER
    | {
        "http-custom-header-server-validation",
        "input-required-result-basic-elicitation",
        "input-required-result-basic-list-roots",
        "input-required-result-basic-sampling",
        "input-required-result-capability-check",
        "input-required-result-multi-round",
        "input-required-result-multiple-input-requests",
        "input-required-result-non-tool-request",
        "input-required-result-request-state",
        "input-required-result-result-type",
        "input-required-result-tampered-state",
        "tasks-mrtr-composition",
    },
    "2025-11-25": CANNOT_BE_TESTED_EVER
    | {
        "elicitation-sep1034-defaults",
        "elicitation-sep1330-enums",
        "logging-set-level",
        "resources-subscribe",
        "resources-unsubscribe",
        "tools-call-elicitation",
        "tools-call-sampling",
        "tools-call-with-logging",
    },
}
MISSING = (
    "Not testable",
    "Unknown tool",
    "Unknown prompt",
    "Resource not found",
    "Method not found",
    "not found. Available tools",
    "Expected InputRequiredResult",
    "Prerequisite failed",
)
# Scenarios with failing checks: the tools do not exist here, or do not run turns.
IN_PART = {
    "2026-07-28": {
        "server-stateless": {
            "sep-2575-server-rejects-undeclared-capability",
            "sep-2575-missing-capability-http-400",
            "sep-2575-http-server-no-independent-requests-on-stream",
            "sep-2575-server-no-log-without-loglevel",
        },
        # A failed turn is a result, not a protocol error.
        "tasks-lifecycle": {"sep-2663-tasks-get-status-failed"},
        # No tool of Sash requires tasks: a client without the extension waits.
        "tasks-required-task-error": {"sep-2663-server-returns-missing-capability-when-required"},
        # The agent asks for approvals one after the other.
        "tasks-mrtr-input": {"tasks-mrtr-partial-fulfillment"},
        # The text of a result is its JSON; the suite expects another text.
        "tasks-request-headers": {"tasks-headers-tolerate-mcp-method-on-tools-call"},
        "tasks-capability-negotiation": set(),
        "tasks-dispatch-and-envelope": set(),
        "tasks-request-state-removal": set(),
        "tasks-wire-fields": set(),
    },
    "2025-11-25": {},
}


@pytest.fixture
async def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Served]:
    """A server with the demo home, Sash's tools, and the tools that the suite needs for its tasks."""
    monkeypatch.setattr(agent_tools, "AGENT_TOOLS", (*agent_tools.AGENT_TOOLS, *SUITED_TOOLS))
    home = demo_home(SystemClock())
    allowed = {"allow_actuation": True, "allowlisted_services": ("delete",)}
    async with serving(tmp_path, model=ObedientModel(), tools=[DELETE], home=home, **allowed) as served:
        yield served


@pytest.mark.parametrize("revision", ["2026-07-28", "2025-11-25"])
async def test_the_conformance_suite_finds_what_it_found_before(
    served: Served, clients: Clients, revision: Revision
) -> None:
    authorization = served.token()["Authorization"]
    found = await clients.conformance(f"{served.url}/mcp", revision, authorization=authorization)
    parts = IN_PART[revision]
    assert found.keys() == PASS[revision] | CANNOT_BE_TESTED[revision] | parts.keys()
    assert {name: failed for name in PASS[revision] if (failed := _failed(found[name]))} == {}
    assert {name: _failed(found[name]) for name in parts} == parts
    for name in CANNOT_BE_TESTED[revision]:
        assert all(check.status != "FAILURE" or _is_missing(check) for check in found[name].checks), found[
            name
        ]


def _failed(scenario: Scenario) -> set[str]:
    return {check.id for check in scenario.failures}


def _is_missing(check: Check) -> bool:
    """Return True if a check failed because only the suite's own server has the tool."""
    return any(words in check.message for words in MISSING)
