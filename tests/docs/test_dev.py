"""The lists in dev.py name tests and benchmarks that exist."""

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def dev():
    spec = importlib.util.spec_from_file_location("dev", ROOT / "dev.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_fast_runs_folders_that_have_tests(dev):
    without_tests = [name for name in dev.FAST_FOLDERS if not any((ROOT / "tests" / name).glob("test_*.py"))]
    assert without_tests == []


def test_fast_skips_files_that_exist_in_its_folders(dev):
    assert [name for name in dev.SLOW_FILES if not (ROOT / "tests" / name).is_file()] == []
    assert {Path(name).parent.name for name in dev.SLOW_FILES} <= {*dev.FAST_FOLDERS}


def test_bench_without_a_name_lists_every_benchmark(dev, capsys):
    assert dev.bench([]) == 2
    assert (
        capsys.readouterr()
        .out.rstrip()
        .endswith(
            "one of: answers, context, fairness, home, home_assistant, page, recall, server, turns, window"
        )
    )
