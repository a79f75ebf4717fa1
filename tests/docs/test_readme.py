"""What the README says is run."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
EXAMPLES = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


@pytest.mark.parametrize("code", EXAMPLES, ids=range(len(EXAMPLES)))
def test_an_example_runs(code, tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr


def test_the_two_commands_are_those_of_dev_py():
    commands = re.findall(r"^python3 dev\.py (\w+)", README, re.MULTILINE)
    assert commands == ["run", "test"]
    done = subprocess.run(
        [sys.executable, "dev.py", "--help"], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert re.findall(r"^  (\w+)", done.stdout, re.MULTILINE) == ["setup", "run", "test", "check", "bench"]
    assert "python3 dev.py test" in (ROOT / ".ci" / "run").read_text()


def test_the_error_codes_in_the_readme_exist():
    from sash import errors

    codes = {
        kind.code
        for kind in vars(errors).values()
        if isinstance(kind, type) and issubclass(kind, errors.SashError)
    }
    [sentence] = re.findall(r"stable `code` \((.*?)\)", README, re.DOTALL)
    assert set(re.findall(r"`(\w+)`", sentence)) <= codes


def test_no_link_in_the_docs_is_dead():
    for page in [ROOT / "README.md", *ROOT.glob("docs/**/*.md"), *ROOT.glob("benchmarks/*.md")]:
        for target in re.findall(r"\]\((?!http)([^)#]+)\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name}: {target}"
