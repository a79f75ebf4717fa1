"""Which tests of a parallel run have to stay together in one worker.

The mark `xdist_group` would say so in the tests, but pytest-xdist 3.8 ignores it with pytest 9.2 and newer
(pytest-dev/pytest-xdist#1386).
"""

import re

from xdist.scheduler import LoadScopeScheduling

# The tests of each group share something that takes seconds to make.
GROUPS = (
    re.compile(r"tests/ha/test_"),  # one Home Assistant
    re.compile(r"tests/intents/test_languages\.py::.*(\[[\w-]+\])$"),  # the grammar of a language
)


class GroupScheduling(LoadScopeScheduling):
    """Give each test to the next free worker, but all tests of a group to the same one. The largest group goes first."""

    def _split_scope(self, nodeid: str) -> str:
        for number, group in enumerate(GROUPS):
            if found := group.match(nodeid):
                return f"{number} {found.groups()}"
        return nodeid
