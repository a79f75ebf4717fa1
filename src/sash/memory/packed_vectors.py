"""Vectors of texts: packs them into bytes, one for each component, and compares them without other packages.

The packed form is a number with which products are scaled, and then the components as bytes with a sign.
"""

import struct
from array import array
from collections.abc import Sequence
from heapq import nlargest
from math import isfinite, sqrt
from operator import mul

_SCALE = struct.Struct("<f")
_MAX_BYTE = 127
# The components that bytes stand for.
_COMPONENTS = [float(byte if byte < 128 else byte - 256) for byte in range(256)]
# The sign of a component as a digit.
_SIGNS = bytes(ord("0") + (byte >> 7) for byte in range(256))


def pack_vector(vector: Sequence[float]) -> bytes:
    """Return a vector of length 1 with the same direction as bytes, one for each component and four more.

    Raises:
        ValueError: a component is not a finite number.
    """
    if not isfinite(sum(map(mul, vector, vector))):
        raise ValueError("the vector has a component that is not a finite number")
    largest = max(map(abs, vector), default=0.0) or 1.0
    parts = array("b", [round(component / largest * _MAX_BYTE) for component in vector])
    return _SCALE.pack(1 / (sqrt(sum(map(mul, parts, parts))) or 1.0)) + parts.tobytes()


def compare_vectors(one: bytes, others: Sequence[bytes]) -> list[float]:
    """Return the cosine similarities of a packed vector and others. It is 0 for one of another length."""
    (scale,) = _SCALE.unpack_from(one)
    components = [scale * _COMPONENTS[byte] for byte in one[_SCALE.size :]]
    return [_compare(components, other) if len(other) == len(one) else 0.0 for other in others]


def _compare(components: Sequence[float], packed: bytes) -> float:
    (scale,) = _SCALE.unpack_from(packed)
    return float(scale * sum(map(mul, components, map(_COMPONENTS.__getitem__, packed[_SCALE.size :]))))


def choose_likely(one: bytes, others: Sequence[bytes], limit: int) -> list[int]:
    """Return the indexes of the vectors that have most signs in common with a packed vector, in any order.

    This takes a tenth of the time of a comparison, and the nearest vectors are most probably among them.
    """
    if len(others) <= limit:
        return list(range(len(others)))
    signs = _read_signs(one)
    common = [-(signs ^ _read_signs(other)).bit_count() for other in others]
    return nlargest(limit, range(len(others)), key=common.__getitem__)


def _read_signs(packed: bytes) -> int:
    """Return the signs of the components as the bits of a number."""
    return int(packed[_SCALE.size :].translate(_SIGNS) or b"0", 2)
