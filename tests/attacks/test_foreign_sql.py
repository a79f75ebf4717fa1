"""Attacks on `analyze_history`: foreign SQL reads only its tables, within limits of time and size."""

import json
import threading
import time
from datetime import UTC, datetime

import pytest

from sash.errors import InvalidInput
from sash.home import query_sandbox
from sash.home.history_analysis import Analysis, describe_analysis
from sash.home.query_sandbox import QueryResult, Table, run_query
from sash.values.continuations import ArtifactRef

ROWS = [("sensor.a", float(n), f"2026-01-01 {n % 24:02}:00:00", str(n), n) for n in range(1000)]
TABLES = {"history": Table(("entity_id", "ts", "local_time", "state", "value"), ROWS)}
BOMB = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT {} FROM c"
GROWING = "WITH RECURSIVE c(t) AS (SELECT 'x' UNION ALL SELECT t || t FROM c) SELECT max(length(t)) FROM c"


def refusal(sql: str) -> str:
    started = time.monotonic()
    with pytest.raises(InvalidInput) as refused:
        run_query(TABLES, sql)
    assert time.monotonic() - started < 30
    return refused.value.message


@pytest.mark.parametrize(
    "sql",
    [
        "ATTACH DATABASE '/tmp/stolen.db' AS stolen",
        "PRAGMA database_list",
        "DROP TABLE history",
        "DELETE FROM history",
        "INSERT INTO history VALUES (1, 2, 3, 4, 5)",
        "UPDATE history SET state = 'x'",
        "CREATE TABLE mine (x)",
        "CREATE TEMP TABLE mine (x)",
        "VACUUM INTO '/tmp/stolen.db'",
        "BEGIN",
    ],
)
def test_only_a_select_is_allowed(sql):
    assert "only one SELECT" in refusal(sql)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT load_extension('/tmp/evil.so')",
        "SELECT zeroblob(2000000000)",
        "SELECT randomblob(2000000000)",
        "SELECT printf('%2000000000d', 1)",
        "SELECT format('%.*c', 2000000000, 'x')",
        "SELECT replace(group_concat(state), '1', group_concat(state)) FROM history",
        "SELECT hex(state) FROM history",
        "SELECT sqlite_version()",
        "SELECT readfile('/etc/passwd')",
        "SELECT state REGEXP '(a+)+$' FROM history",
        "SELECT json_group_array(state) FROM history",
    ],
)
def test_dangerous_functions_are_refused(sql):
    message = refusal(sql)
    assert "is not allowed here" in message or "no such function" in message


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM sqlite_master",
        "SELECT * FROM pragma_database_list",
        "SELECT * FROM json_each('[1, 2]')",
        "SELECT * FROM messages",
        "SELECT 1; SELECT 2",
        "",
        "-- nothing",
        "SELECT (" * 200,
        "SELECT 1 /* " + "x" * 5000 + " */",
    ],
)
def test_other_tables_and_broken_sql_are_refused(sql):
    assert refusal(sql)


@pytest.mark.parametrize("what", ["count(*)", "n", "group_concat(n)"])
def test_a_query_without_an_end_is_stopped_or_cut(monkeypatch, what):
    monkeypatch.setattr(query_sandbox, "MAX_SECONDS", 0.3)
    if what == "n":
        found = run_query(TABLES, BOMB.format(what))
        assert found.is_cut and len(found.rows) == query_sandbox.MAX_RESULT_ROWS
    else:
        assert "took longer" in refusal(BOMB.format(what)) or "characters" in refusal(BOMB.format(what))


def test_a_cross_join_is_stopped(monkeypatch):
    monkeypatch.setattr(query_sandbox, "MAX_SECONDS", 0.3)
    assert "took longer" in refusal("SELECT count(*) FROM history a, history b, history c, history d")


def test_a_text_cannot_grow_without_limit():
    assert "characters" in refusal(GROWING)
    assert "characters" in refusal("SELECT group_concat(a.state) FROM history a, history b")


def test_a_sort_of_many_large_texts_is_stopped(monkeypatch):
    monkeypatch.setattr(query_sandbox, "MAX_SECONDS", 20.0)
    monkeypatch.setattr(query_sandbox, "MAX_GROWTH_BYTES", 30 << 20)
    large = "SELECT group_concat(state) || {} AS t FROM history"
    sql = (
        f"WITH big AS ({large.format(1)}) SELECT b.t || a.value || c.value AS t FROM history a, history c, big b "
        "ORDER BY t DESC"
    )
    assert "too much memory" in refusal(sql)


def test_text_that_is_not_unicode_is_refused():
    assert "the SQL is wrong" in refusal("SELECT '\ud800'")


def test_a_useful_query_works():
    found = run_query(
        TABLES,
        "SELECT substr(local_time, 12, 2) AS hour, avg(value) AS mean, count(*) OVER () FROM history "
        "GROUP BY hour HAVING mean > 1 ORDER BY hour LIMIT 3",
    )
    assert found.columns[:2] == ("hour", "mean") and len(found.rows) == 3


def test_a_number_without_an_end_is_null_because_json_has_none():
    found = run_query(TABLES, "SELECT 9e999, -9e999, 1.5, x'00ff'")
    assert found.rows == [(None, None, 1.5, "00ff")]
    assert json.loads(json.dumps(found.rows, allow_nan=False))


class WatchedRows(list):
    """Rows that note which threads read all of them."""

    def __init__(self, rows):
        super().__init__(rows)
        self.readers = set()

    def __iter__(self):
        self.readers.add(threading.get_ident())
        return super().__iter__()


class KeepingContext:
    async def keep(self, data, kind, name):
        return ArtifactRef(name, kind, len(data))


async def test_a_large_result_is_read_outside_of_the_event_loop():
    """A result may have 5,000 rows of 32 texts, and each text may be a time for the plot."""
    rows = WatchedRows([tuple(f"2026-01-01 00:{n % 60:02}:00" for _ in range(8)) for n in range(5000)])
    now = datetime(2026, 1, 2, tzinfo=UTC)
    analysis = Analysis((), "SELECT", now, now, UTC)
    found = QueryResult(tuple("abcdefgh"), rows)
    described = await describe_analysis(analysis, found, KeepingContext(), plot=True)
    assert described["total"] == 5000 and described["artifact"]
    assert rows.readers and threading.get_ident() not in rows.readers
