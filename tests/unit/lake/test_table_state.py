"""What the state of a table says of its partitions."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from lakewright.lake.table_state import TableState

DAY = date(2022, 1, 1)
KNOWN = TableState(
    True, partition_columns=("day", "region"), partitions=frozenset({(DAY, "eu"), (DAY, None)})
)


@pytest.mark.parametrize(
    ("state", "partition", "expected"),
    [
        (KNOWN, {"day": DAY, "region": "eu"}, True),
        (KNOWN, {"region": "eu", "day": DAY}, True),
        (KNOWN, {"day": DAY, "region": "us"}, False),
        (KNOWN, {"day": DAY}, True),
        (KNOWN, {"day": date(2022, 1, 2)}, False),
        (KNOWN, {"month": DAY}, None),
        (TableState(True, partition_columns=("day",)), {"day": DAY}, None),
    ],
)
def test_a_state_tells_whether_there_are_files_of_a_partition(
    state: TableState, partition: dict[str, Any], expected: bool | None
) -> None:
    assert state.has_files(partition) is expected
