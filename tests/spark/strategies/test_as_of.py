"""An entity with history at a time: only files are read that can have versions of that time."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from tests.spark.strategies.bench import SmallLake, entity, in_way

from lakewright.relations.entity import read_silver

BY_DAY = "${slice.date}"


def test_files_of_other_times_are_skipped(lake: SmallLake, monkeypatch: pytest.MonkeyPatch) -> None:
    """`rewind.md`, "Look back": Delta skips files of large tables by the least and greatest times in them."""
    monkeypatch.setattr("lakewright.spark.delta_files.MOST_BYTES", 0)
    things = entity("historic")
    with in_way("marked"):
        for day in (1, 2):
            rows = [{"id": 10 * day + n, "v": "a"} for n in range(3)]
            lake.load(things, f"2024-01-0{day}", rows, processing_time=BY_DAY)
        lake.load(things, "2024-01-03", [{"id": 20 + n, "v": "b"} for n in range(3)], processing_time=BY_DAY)
    files, rows_read = {}, {}
    for day in (1, 2, 3):
        frame = read_silver(lake.lake, lake.spark, things, at=datetime(2024, 1, day, tzinfo=UTC))
        files[day], rows_read[day] = len(frame.inputFiles()), frame.count()
    assert rows_read == {1: 3, 2: 6, 3: 6}
    whole = len(read_silver(lake.lake, lake.spark, things).inputFiles())
    assert files[1] == 1, (files, whole)
    assert files[2] == 2, (files, whole)
    assert files[3] <= whole
