"""Which tests of a parallel run have to stay together in one worker.

The mark `xdist_group` would say so in the tests, but pytest-xdist 3.8 ignores it with pytest 9.2 and newer
(pytest-dev/pytest-xdist#1386).
"""

import re

from xdist.scheduler import LoadScopeScheduling

# The tests of each group share something that takes seconds to make.
GROUPS = (
    re.compile(r"tests/ha/test_integration"),  # one Home Assistant with the integration
    re.compile(r"tests/ha/test_(?:house|remote)"),  # one Home Assistant
    re.compile(r"tests/ha/test_answers"),  # one Home Assistant with the house of the table
    re.compile(r"tests/browser/(test_\w+)"),  # a browser, and a server
    re.compile(r"tests/intents/test_languages\.py::.*(\[[\w-]+\])$"),  # the grammar of a language
)


def group_of(nodeid: str) -> str:
    """Return the name of the group that a test belongs to; most tests are alone in theirs."""
    for number, group in enumerate(GROUPS):
        if found := group.match(nodeid):
            return f"{number} {found.groups()}"
    return nodeid


class GroupScheduling(LoadScopeScheduling):
    """Give each group to the next free worker, the largest first."""

    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid)
