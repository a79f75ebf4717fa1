"""Compare a value with its golden file, or write the file if SASH_UPDATE_GOLDEN=1 is set."""

import json
import os
import re
from difflib import unified_diff
from pathlib import Path

MAX_DIFF_CHARS = 5000
FOLDER = Path(__file__).parent
ULID = re.compile(r"\b[0-7][0-9A-HJKMNP-TV-Z]{25}\b")


def assert_json_matches(name: str, value: object) -> None:
    """Compare a JSON value, pretty printed with sorted keys, with the golden file `name`."""
    assert_text_matches(name, json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False) + "\n")


def assert_text_matches(name: str, text: str) -> None:
    """Compare a text with the golden file `name`."""
    path = FOLDER / name
    if os.environ.get("SASH_UPDATE_GOLDEN") == "1":
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert path.exists(), f"{name} is missing: run with SASH_UPDATE_GOLDEN=1 to write it"
    expected = path.read_text(encoding="utf-8")
    changed = "\n".join(
        unified_diff(expected.splitlines(), text.splitlines(), "golden", "found", lineterm="")
    )
    assert not changed, f"{name} has changed:\n{changed[:MAX_DIFF_CHARS]}"


def name_ids(value: object) -> object:
    """Return a JSON value in which `<id 1>`, `<id 2>`, … replace the ULIDs, in order of appearance."""
    names: dict[str, str] = {}

    def name_id(found: re.Match[str]) -> str:
        return names.setdefault(found[0], f"<id {len(names) + 1}>")

    return json.loads(ULID.sub(name_id, json.dumps(value, ensure_ascii=False)))
