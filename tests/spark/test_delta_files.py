"""Rows by their places in the files of a Delta table, and commits that change them there.

Each is compared with Delta's own reader, which reads all tables here by `format("delta")`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lakewright.errors import CommitConflict
from lakewright.lake.delta_sql import table_history
from lakewright.lake.spark_errors import translated_failures
from lakewright.spark.delta_files import PLACE, DeltaFiles, delta_files, file_number
from lakewright.spec.models.places import Address

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


PARTS = ("a b", "50% ä/ö", "")
"""Values of a partition, some of which stand encoded in the names of folders."""


@pytest.fixture
def session(spark: SparkSession) -> SparkSession:
    return spark.newSession()


def made(session: SparkSession, folder: Path, rows: int = 40, parts: Collection[str] = PARTS) -> str:
    """Return the place of a table with these rows, in a folder and a file for each part."""
    values = ", ".join(f"'{part}'" for part in parts)
    frame = session.range(0, rows, 1, 1).selectExpr(
        "id", f"element_at(array({values}), cast(id % {len(parts)} + 1 as int)) as part", "'old' as v"
    )
    writer = frame.write.format("delta").partitionBy("part")
    writer.option("delta.enableDeletionVectors", "true").save(str(folder))
    return str(folder)


def read(session: SparkSession, place: str) -> dict[int, str]:
    """Return the rows as Delta's own reader has them."""
    rows = session.read.format("delta").load(place).collect()
    found = {row["id"]: row["v"] for row in rows}
    assert len(found) == len(rows)
    return found


def known(session: SparkSession, place: str) -> DeltaFiles:
    files = delta_files(session, place)
    assert files is not None
    assert files.has_places
    return files


def places_of(files: DeltaFiles) -> dict[int, int]:
    return {row["id"]: row[PLACE] for row in files.rows().select("id", PLACE).collect()}


def replace(
    files: DeltaFiles,
    rows: DataFrame,
    *,
    number: int,
    marked: Collection[int] = (),
    removed: Collection[int] = (),
) -> None:
    files.replace(
        rows, marked=marked, removed=removed, app_id="tests", number=number, counts=(0, len(marked))
    )


def changed(files: DeltaFiles, ids: Collection[int], value: str) -> DataFrame:
    """Return the rows of these ids with another value."""
    rows = files.frame().where(f"id in ({', '.join(map(str, ids)) or 'null'})")
    return rows.selectExpr("id", "part", f"'{value}' as v")


@settings(max_examples=2, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    commits=st.lists(
        st.tuples(st.booleans(), st.sets(st.integers(0, 39), min_size=1)), min_size=1, max_size=3
    )
)
def test_rows_changed_at_their_places_are_those_that_delta_reads(
    session: SparkSession, tmp_path_factory: Any, commits: list[tuple[bool, set[int]]]
) -> None:
    place = made(session, tmp_path_factory.mktemp("table") / "t")
    expected = dict.fromkeys(range(40), "old")
    for number, (is_copied, ids) in enumerate(commits):
        files, value = known(session, place), f"new {number}"
        places = places_of(files)
        assert places.keys() == expected.keys()
        if is_copied:  # whole files, with the rows in them that do not change
            numbers = {file_number(places[each]) for each in ids}
            others = files.rows(numbers).where(f"id not in ({', '.join(map(str, ids))})").drop(PLACE)
            replace(files, others.unionByName(changed(files, ids, value)), number=number, removed=numbers)
        else:
            replace(files, changed(files, ids, value), number=number, marked=[places[each] for each in ids])
        expected |= dict.fromkeys(ids, value)
        assert read(session, place) == expected
    assert {row["id"]: row["v"] for row in known(session, place).frame().collect()} == expected


def test_a_file_whose_rows_are_all_marked_is_removed(session: SparkSession, tmp_path: Path) -> None:
    place = made(session, tmp_path / "t", rows=6, parts=("one",))
    for number in range(2):
        files = known(session, place)
        places = places_of(files)
        ended = sorted(places)[:2]
        replace(files, files.frame().limit(0), number=number, marked=[places[each] for each in ended])
    assert sorted(read(session, place)) == [4, 5]
    detail = session.sql(f"DESCRIBE DETAIL delta.`{place}`").first()
    assert detail is not None
    assert detail["numFiles"] == 1


def test_the_history_has_a_merge_with_its_counts_and_the_number_of_its_application(
    session: SparkSession, tmp_path: Path
) -> None:
    place = made(session, tmp_path / "t")
    files = known(session, place)
    places = places_of(files)
    files.replace(
        changed(files, [1, 2], "new"),
        marked=[places[1], places[2]],
        removed=(),
        app_id="tests",
        number=7,
        counts=(0, 2),
    )
    newest = table_history(session, Address(location=place), 1).first()
    assert newest is not None
    assert (newest["version"], newest["operation"]) == (1, "MERGE")
    assert newest["operationMetrics"]["numTargetRowsUpdated"] == "2"
    from deltalake import DeltaTable

    assert DeltaTable(place).transaction_version("tests") == 7


@pytest.mark.parametrize("by", ["append", "delete", pytest.param("replace", marks=pytest.mark.nightly)])
def test_a_commit_that_came_between_is_a_conflict_and_nothing_is_written(
    session: SparkSession, tmp_path: Path, by: str
) -> None:
    place = made(session, tmp_path / "t")
    files = known(session, place)
    places, rows = places_of(files), changed(files, [1], "mine")
    others: dict[str, Callable[[], Any]] = {
        "append": lambda: session.sql(f"INSERT INTO delta.`{place}` VALUES (99, 'a b', 'other')"),
        "delete": lambda: session.sql(f"DELETE FROM delta.`{place}` WHERE id = 1"),
        "replace": lambda: replace(files, changed(files, [1], "other"), number=1, marked=[places[1]]),
    }
    others[by]()
    before = read(session, place)
    with pytest.raises(CommitConflict), translated_failures("while the slice was written"):
        replace(files, rows, number=2, marked=[places[1]])
    assert read(session, place) == before


@pytest.mark.parametrize("by", ["another program", "many files"])
def test_files_that_no_checksum_lists_are_left_to_delta_s_reader(
    session: SparkSession, tmp_path: Path, by: str
) -> None:
    place = str(tmp_path / "t")
    if by == "another program":
        from deltalake import write_deltalake

        pa = pytest.importorskip("pyarrow")
        write_deltalake(place, pa.table({"id": [1]}))
    else:
        session.range(0, 60, 1, 60).write.format("delta").save(place)
    assert delta_files(session, place) is None


@pytest.mark.parametrize(("has_vectors", "name"), [("false", "v"), ("true", "_metadata")])
def test_a_table_whose_rows_have_no_index_is_read_but_has_no_places(
    session: SparkSession, tmp_path: Path, has_vectors: str, name: str
) -> None:
    place = str(tmp_path / "t")
    writer = session.range(3).selectExpr("id", f"'v' as {name}").write.format("delta")
    writer.option("delta.enableDeletionVectors", has_vectors).save(place)
    files = delta_files(session, place)
    assert files is not None
    assert not files.has_rows_placed
    assert sorted(row["id"] for row in files.frame().collect()) == [0, 1, 2]


def test_a_large_table_is_read_by_delta_s_reader_with_the_same_places(
    session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = made(session, tmp_path / "t")
    files = known(session, place)
    listed = places_of(files)
    monkeypatch.setattr("lakewright.spark.delta_files.MOST_BYTES", 0)
    assert places_of(files) == listed
    replace(files, changed(files, [1, 2], "new"), number=1, marked=[listed[1], listed[2]])
    assert read(session, place) == dict.fromkeys(range(40), "old") | {1: "new", 2: "new"}
