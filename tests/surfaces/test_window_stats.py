"""The counts of windows: in a session, in the statistics of an owner, in the metrics and in the log."""

import json
import logging

from sash.server.metrics import Metrics
from tests.surfaces.command_line import chat_once
from tests.surfaces.serving import serving
from tests.surfaces.speaking import ERAS, call, talking

TWO_TURNS = {"max_tokens": 1000, "max_turns": 2, "evict_to": 1.0}


async def talk(served, *messages, **options):
    session_id = await served.start(window=TWO_TURNS)
    for message in messages:
        await served.wait(await served.send(session_id, message, **options))
    return session_id


async def test_a_session_shows_the_counts_of_its_window(served):
    session_id = await talk(served, "one", "two", "three", tags=["mine"])
    shown = (await served.client.get(f"/v1/sessions/{session_id}")).json()
    stats = shown["window_stats"]
    assert (stats["message_count"], stats["max_tokens"], stats["turn_count"]) == (4, 1000, 2)
    assert (stats["evicted_count"], stats["over_budget"], stats["health"]) == (2, False, "ok")
    assert stats["current_tokens"] > 0 and stats["utilization"] == stats["current_tokens"] / 10
    assert stats["tag_distribution"] == {"input": 2, "mine": 2, "output": 2}
    assert shown["session"]["stats"]["evicted_messages"] == 2
    await served.client.patch(f"/v1/sessions/{session_id}", json={"preferences": {"language": "en"}})
    async with talking(served.url, ERAS[0]) as client:  # now read from the store
        assert (await call(client, "ha_agent_get_session", session_id=session_id))["window_stats"] == stats


async def test_a_window_that_is_too_full_is_not_healthy(served):
    session_id = await served.start(window={"max_tokens": 20})
    await served.wait(await served.send(session_id, "word " * 30))
    stats = (await served.client.get(f"/v1/sessions/{session_id}")).json()["window_stats"]
    assert (stats["over_budget"], stats["health"]) == (True, "over_budget") and stats["utilization"] > 100
    windows = (await served.client.get("/v1/stats")).json()["windows"]
    assert windows["health"] == {"ok": 0, "nearly_full": 0, "over_budget": 1}


async def test_the_statistics_of_an_owner_add_up_the_windows_of_its_active_sessions(served):
    first = await talk(served, "one", "two", "three")
    second = await talk(served, "four", tags=["mine"])
    await served.client.post(f"/v1/sessions/{await talk(served, 'five')}/end")
    stats = (await served.client.get("/v1/stats")).json()
    shown = [
        (await served.client.get(f"/v1/sessions/{key}")).json()["window_stats"] for key in (first, second)
    ]
    assert stats["windows"] == {
        "windows": 2,
        "message_count": 6,
        "current_tokens": sum(one["current_tokens"] for one in shown),
        "evicted_count": 2,
        "health": {"ok": 2, "nearly_full": 0, "over_budget": 0},
        "tag_distribution": {"input": 3, "output": 3, "mine": 1},
    }
    assert stats["evicted_messages"] == stats["today"]["evicted_messages"] == 2


async def test_the_metrics_have_windows_without_a_label_for_each_session(tmp_path):
    ended = []
    async with serving(tmp_path, lambda request: "ok", on_turn=ended.append) as served:
        await talk(served, "one", "two", "three")
        text = (await served.client.get("/metrics")).text
        assert 'sash_windows{health="ok"} 1.0' in text and "sash_window_messages 4.0" in text
        assert "sash_window_tokens 0" not in text and "sash_window_tokens " in text
        metrics = Metrics()
        for result in ended:
            metrics.count_turn(result)
        rendered = metrics.render(served.runtime.sum_cached_windows()).decode()
        assert "sash_evicted_messages_total 2.0" in rendered


async def test_the_log_has_windows_and_evictions_but_no_text(served, caplog):
    with caplog.at_level(logging.DEBUG, "sash.engine"):
        session_id = await talk(served, "secretive one", "secretive two", "secretive three")
    lines = [record.getMessage() for record in caplog.records]
    windows = [line for line in lines if line.startswith(f"Window: conv={session_id}, msgs=")]
    assert len(windows) == 3 and "/1000 (" in windows[0]
    evicted = [line for line in lines if line.startswith(f"Evicted: conv={session_id}, role=")]
    assert len(evicted) == 2 and "role=user, tokens=" in evicted[0]
    assert not [line for line in lines if "secretive" in line]


def test_show_prints_the_window(cli):
    session_id = chat_once(cli)
    shown = cli("show", session_id).stdout
    assert "window" in shown and "4 messages, " in shown and ", 0 evicted" in shown
    stats = json.loads(cli("show", session_id, "--json").stdout)["window_stats"]
    assert (stats["message_count"], stats["health"]) == (4, "ok")
