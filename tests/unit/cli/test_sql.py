"""`lakewright sql`: what its answer does not show is told, whatever the format."""

from __future__ import annotations

import json
from pathlib import Path

from tests.commands import InProcess
from tests.people import write_people


def test_rows_beyond_the_first_are_told_beside_json_and_below_a_table(tmp_path: Path) -> None:
    lake = InProcess(write_people(tmp_path / "lake"))
    more = "mappings: {one: {kind: values, records: [[1]], columns: {n: int}}}\n"
    (tmp_path / "lake" / "model" / "more.yml").write_text(more)
    told = "the first 1 row; --rows shows more"

    cut = lake.run("sql", "SHOW TABLES", "--rows", "1", "-o", "json")
    assert (len(json.loads(cut.out)), told in cut.err) == (1, True), cut.all
    assert told in lake.run("sql", "SHOW TABLES", "--rows", "1").out

    whole = lake.run("sql", "SHOW TABLES", "-o", "json")
    assert len(json.loads(whole.out)) > 1
    assert whole.err == ""
