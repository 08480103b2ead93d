"""What `init --from` writes is planned at once, and applying it gives the rows of the files."""

from __future__ import annotations

import csv
import gzip
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.commands import InProcess
from tests.unit.profiling.landing import write
from tests.unit.profiling.test_shapes import SHAPES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(1200)]

RUNWAYS = Path(__file__).parents[2] / "examples" / "airports" / "data" / "runways"


def rows(file: Path, *columns: str) -> set[tuple[str, ...]]:
    with gzip.open(file, "rt", encoding="utf-8", newline="") as lines:
        return {tuple(row[name] for name in columns) for row in csv.DictReader(lines)}


def test_the_tables_have_the_rows_of_the_last_files_and_the_history_of_all(
    tmp_path: Path, session: SparkSession
) -> None:
    here = InProcess(tmp_path, session)
    write(tmp_path, {f"landing/{name}": text for name, text in SHAPES["a folder a day"][0].items()})
    assert here.json("init", "lake", "--from", str(RUNWAYS), "--from", "landing")["questions"] == []
    assert here.run("validate", "--project", "lake").code == 0
    plan = here.json("plan", "--project", "lake")
    assert (len(plan["steps"]), plan["findings"]) == (3, [])

    done = here.run("apply", "--project", "lake")
    assert done.code == 0, done.all

    def found(query: str) -> Any:
        return here.json("sql", query, "--project", "lake")

    last = rows(RUNWAYS / "2022-03-01.csv.gz", "id", "airport_ident", "length_ft")
    query = (
        "SELECT count(*) n, sum(id) ids, count(DISTINCT airport_ident) idents, sum(length_ft) ft FROM runways"
    )
    assert found(query) == [
        {
            "n": len(last),
            "ids": sum(int(row[0]) for row in last),
            "idents": len({row[1] for row in last}),
            "ft": sum(int(row[2] or 0) for row in last),
        }
    ]
    first = found("SELECT min(dlf_ValidFrom) at, count(DISTINCT id) ids FROM runways.history")[0]
    files = sorted(RUNWAYS.iterdir())
    assert first["at"].startswith("2022-01-01")
    assert first["ids"] == len(set.union(*(rows(file, "id") for file in files)))
    kept = "SELECT count(*) n, count_if(zip = '00041') z, max(id) id FROM customers"
    assert found(kept) == [{"n": 41, "z": 1, "id": 41}]
    assert found("SELECT count(*) n FROM order_lines") == [{"n": 54}]
