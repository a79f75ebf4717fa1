"""The class of an error decides if it reports wrong input, not the spelling of its code."""

import pytest

from sash import errors
from sash.cli.exit_codes import EXIT_FAILED, EXIT_USAGE, exit_code
from sash.errors import InvalidInput, SashError, is_wrong_input
from sash.server.http_errors import get_status


class ColourUnsuitable(InvalidInput):
    """An error of a program that builds on Sash."""

    code = "colour_unsuitable"


class UnknownTrouble(SashError):
    """An error that is not about input."""

    code = "unknown_trouble"


def test_the_codes_of_invalid_input_and_its_subclasses_are_wrong_input():
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, SashError)]
    for kind in kinds:
        assert is_wrong_input(kind.code) == issubclass(kind, InvalidInput), kind


def test_every_error_says_what_it_means():
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, SashError)]
    assert [k.__name__ for k in kinds if not k.__doc__ or k.__doc__.startswith(f"{k.__name__}(")] == []


@pytest.mark.parametrize(
    ("kind", "status", "code"), [(ColourUnsuitable, 422, EXIT_USAGE), (UnknownTrouble, 500, EXIT_FAILED)]
)
def test_an_error_of_another_program_is_mapped_by_its_class(kind, status, code):
    assert (get_status(kind.code), exit_code(kind.code)) == (status, code)
