"""Token counts by tiktoken: the fastest way, for programs that have the memory."""

import re
from collections.abc import Iterator

import tiktoken

# tiktoken's Rust code panics on a run of about a million white-space characters, so a longer run than this
# is cut. The count of a run of equal characters stays exact.
_MAX_RUN = 1 << 19
_white_space = re.compile(r"\s+")


class TiktokenEncoding:
    """An encoding in Rust. Creating it takes a fraction of a second, in which no other thread runs."""

    def __init__(self, name: str, pattern: str, ranks: dict[bytes, int]) -> None:
        self.encoding = tiktoken.Encoding(name, pat_str=pattern, mergeable_ranks=ranks, special_tokens={})

    def count(self, text: str) -> int:
        if len(text) <= _MAX_RUN:
            return len(self.encoding.encode_ordinary(text))
        return sum(len(self.encoding.encode_ordinary(part)) for part in _cut_long_runs(text))


def _cut_long_runs(text: str) -> Iterator[str]:
    """Yield the text in parts without a run of more than `_MAX_RUN` white-space characters."""
    start = 0
    for run in _white_space.finditer(text):
        for end in range(run.start() + _MAX_RUN, run.end(), _MAX_RUN):
            yield text[start:end]
            start = end
    yield text[start:]
