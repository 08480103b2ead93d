"""How long slices will take."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from lakewright.due.time_left import TimedSlice, time_left

MB = 1_000_000


@pytest.mark.parametrize(
    ("known", "rest", "elapsed", "left"),
    [
        ([], [MB], 0, None),
        ([(MB, 2)], [MB, MB], 0, 4),
        ([(MB, 2)], [MB, MB], 1.5, 2.5),
        ([(MB, 2)], [MB], 3, -1),
        ([(MB, 2)], [], 0, 0),
        ([(MB, 2)], [10, 10, 10], 0, 6),  # a small slice takes as long as a commit
        ([(MB, 2)], [9 * MB, MB], 0, 20),  # a large one as long as its bytes
        ([(0, 2)], [0, MB], 0, 4),  # bytes that are not known
        ([(MB, 20), (MB, 2), (MB, 2)], [MB], 0, 2),  # the first one of a process
        ([(MB, 20), (MB, 2)], [MB], 0, 2),
        ([(MB, 9)] * 9 + [(MB, 2)] * 5, [MB], 0, 2),  # the last ones
    ],
)
def test_it_is_estimated_by_number_and_by_bytes_of_the_last_slices(
    known: Sequence[tuple[int, float]], rest: Sequence[int], elapsed: float, left: float | None
) -> None:
    found = time_left([TimedSlice(*each) for each in known], rest, elapsed)
    assert found == (None if left is None else pytest.approx(left))
