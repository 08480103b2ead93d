"""D2: names of slices that are landed."""

from __future__ import annotations

import pytest

from lakewright.errors import UsageError
from lakewright.slices.landing import check_slice_name


@pytest.mark.parametrize("name", ["2024-05-01", "2024-05-01.json", "day=2024-05-01", "a b", "ä" * 127, "%41"])
def test_a_usual_name_is_accepted(name: str) -> None:
    check_slice_name(name)


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("", "is empty"),
        (" ", "is empty"),
        ("a ", "ends with a space"),
        ("_SUCCESS", "begins with _, which hides it"),
        ("2024-05-01.tmp", "ends as a file that is still being written"),
        (".hidden", "begins with ."),
        ("..", "begins with ."),
        ("a/b", "has a slash"),
        ("a\\b", "has a slash"),
        ("a:b", "a colon"),
        ("a\nb", "a control character"),
        ("a\0b", "a control character"),
        ("ä" * 128, "has more than 255 bytes"),
    ],
)
def test_a_name_that_is_hidden_or_no_name_everywhere_is_refused(name: str, problem: str) -> None:
    with pytest.raises(UsageError, match="can't be the name of a slice") as raised:
        check_slice_name(name)
    assert problem in raised.value.message
