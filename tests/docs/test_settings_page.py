"""`docs/settings.md` lists every setting with its default."""

import re
from dataclasses import fields
from pathlib import Path

from sash.app.settings import Settings

PAGE = Path(__file__).parents[2] / "docs" / "settings.md"
ROWS = dict(re.findall(r"^\| `(\w+)` \| (.+?) \|", PAGE.read_text(encoding="utf-8"), re.M))


def test_the_page_lists_every_setting_and_no_other_name():
    assert sorted(ROWS) == sorted(setting.name for setting in fields(Settings))


def test_the_page_has_the_defaults():
    for setting in fields(Settings):
        default, shown = setting.default, ROWS[setting.name]
        if isinstance(default, bool):
            assert shown == f"`{str(default).lower()}`"
        elif isinstance(default, int | float):
            assert shown == f"`{default:g}`" or shown == f"`{default}`"
        elif isinstance(default, str):
            assert shown == f"`{default}`"
        elif default:
            assert shown == f"`{', '.join(default)}`"
        else:
            assert not shown.startswith("`") or "demo" in shown
