"""The calls that restore an entity to an earlier state."""

import pytest

from sash.home.restore import SavedState, plan_restore


@pytest.mark.parametrize(
    ("state", "service"),
    [("closed", "cover.close_cover"), ("closing", "cover.close_cover"), ("open", "cover.open_cover")],
)
def test_a_cover_without_a_position_is_opened_or_closed(state, service):
    assert plan_restore("cover", SavedState(state, {}), SavedState("open", {})) == [(service, {})]
