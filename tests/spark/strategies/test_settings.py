"""Settings of entities, kinds of slices and of tables, and several entities at once.

Headings are those of `processing-strategies.md`.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.spark.strategies.bench import SmallLake, entity, hours, pa, pq, table_of

from lakewright.errors import DataLossError, MigrationError, SchemaDriftError, SliceError
from lakewright.lake.files import Files, HadoopFiles, LocalFiles
from lakewright.spec.models.entity import Strategy

KEY = {"name": "id", "fieldroles": ["businesskey"]}
PARTITION = {"name": "part", "fieldroles": ["partition"]}


def test_full_replaces_the_partitions_of_the_slice_and_no_others(lake: SmallLake) -> None:
    """ "Partition Handling", also for null partitions; "Full Strategy": an empty slice has none."""
    sales = entity("full", columns=[PARTITION])
    schema = [("part", pa.int32()), ("v", pa.string())]
    lake.load(sales, "s1", [{"part": p, "v": "old"} for p in (2023, 2024, 2025, None)], schema)
    lake.load(sales, "s2", [{"part": p, "v": "new"} for p in (2024, 2025, 2026, None)], schema)
    expected = [(2023, "old"), (2024, "new"), (2025, "new"), (2026, "new"), (None, "new")]
    assert lake.rows(sales, "part", "v") == expected

    assert lake.load(sales, "s3", [], schema).delta_version is None
    assert lake.rows(sales, "part", "v") == expected


def test_a_table_is_not_written_under_another_declaration(lake: SmallLake) -> None:
    """ "Partition Handling"; "Common Processing Pipeline", keys and renames; "Compute source hash"; D18."""
    row = {"id": 1, "x": 1, "part": "p", "v": "a"}
    things = entity(columns=[KEY, {"name": "v"}])
    lake.load(things, "s1", [row])
    lake.put(things, "s2", [{**row, "v": "b"}])
    keyed_by_two = [KEY, {"name": "x", "fieldroles": ["businesskey"]}]
    for declared, forced, kind, told in (
        ([KEY, PARTITION], None, MigrationError, "by no column, the entity by part"),
        (keyed_by_two, None, SchemaDriftError, "--strategy full --allow-data-loss"),
        ([{**KEY, "newname": "new"}], None, SchemaDriftError, "is called 'id' in the table and 'new' now"),
        ([KEY, {"name": "v", "newname": "new"}], None, SchemaDriftError, "'v' in the table and 'new' now"),
        ([KEY], Strategy.HISTORIC, MigrationError, ""),
        ([KEY], Strategy.FULL, DataLossError, ""),
    ):
        error = lake.process(entity(columns=declared), strategy=forced).error
        assert isinstance(error, kind), (declared, forced, error)
        assert told in f"{error.message} {error.remedy}"
        for item in list(lake.items()):
            if item.failed is not None:
                lake.ledger.resolve(item.item_id, "under another declaration")
    (left,) = [item for item in lake.items() if item.item_id.endswith("s2")]
    lake.ledger.skip(left.item_id, "enough")

    error = lake.fail(things, "s3", [{**row, "id": "one"}])
    assert isinstance(error, SchemaDriftError)
    assert (error.details["column"], error.details["sample"]) == ("id", "one")
    lake.put_aside()
    silver = things.places(lake.lake.settings).silver.sql
    lake.spark.sql(f"ALTER TABLE {silver} SET TBLPROPERTIES ('lakewright.hashVersion' = '0')")
    error = lake.fail(things, "s4", [row])
    assert isinstance(error, MigrationError)
    assert "version 0" in error.message
    assert lake.rows(things, "id", "v") == [(1, "a")]


@pytest.mark.nightly
def test_a_table_with_other_partitions_is_refused(lake: SmallLake) -> None:
    """ "Partition Handling": Full would replace other rows than those of the slice's partitions."""
    without, by_part = [KEY], [KEY, PARTITION]
    for strategy, first, then, told in (
        ("full", without, by_part, "by no column, the entity by part"),
        ("full", by_part, without, "by part, the entity by none"),
        ("merge", without, by_part, "by no column, the entity by part"),
    ):
        name = f"{strategy}{len(first)}"
        lake.load(entity(strategy, name, columns=first), "s1", [{"id": 1, "part": "x"}])
        changed = entity(strategy, name, columns=then)
        error = lake.fail(changed, "s2", [{"id": 2, "part": "y"}])
        assert isinstance(error, MigrationError)
        assert told in error.message
        assert lake.rows(changed, "id", "part") == [(1, "x")]


def test_merge_looks_only_where_partitions_never_move(lake: SmallLake) -> None:
    """ "Merge Strategy": applies partition filters to limit merge scope."""
    sales = entity(columns=[KEY, PARTITION], settings={"partition_moves": "never"})
    lake.load(sales, "s1", [{"id": n, "part": p, "v": "a"} for n, p in enumerate(["x", "y", None])])

    summary = lake.load(sales, "s2", [{"id": 0, "part": "x", "v": "b"}, {"id": 2, "part": None, "v": "b"}])

    assert (summary.changed, summary.inserted) == (2, 0)
    assert lake.rows(sales, "id", "part", "v") == [(0, "x", "b"), (1, "y", "a"), (2, None, "b")]


@pytest.mark.nightly
def test_excluded_columns_are_no_change_but_arrive(lake: SmallLake) -> None:
    loads = entity(
        columns=[KEY, {"name": "run", "newname": "load_id"}], settings={"hash_exclude": ["load_id"]}
    )
    lake.load(loads, "s1", [{"id": 1, "v": "a", "run": 1}])
    assert lake.load(loads, "s2", [{"id": 1, "v": "a", "run": 2}]).changed == 0
    assert lake.load(loads, "s3", [{"id": 1, "v": "b", "run": 3}]).changed == 1
    assert lake.rows(loads, "load_id") == [(3,)]


@pytest.mark.nightly
def test_a_slice_may_bring_its_own_key_and_flag_under_any_name(lake: SmallLake) -> None:
    """ "Common Processing Pipeline": primary key, deleted flag."""
    crm = entity("historic", columns=[KEY, {"name": "gone", "newname": "dlf_deleted"}])
    rows = [{"id": 1, "PK_things": "k1", "gone": "false"}, {"id": 1, "PK_things": "k2", "gone": None}]
    lake.load(crm, "s1", rows)
    lake.load(crm, "s2", [{"id": 1, "PK_things": "k2", "gone": "true"}])
    assert lake.rows(crm, "PK_things", "dlf_deleted", "dlf_IsCurrent") == [
        ("k1", False, True),
        ("k2", True, False),
    ]
    assert "gone" not in lake.table(crm).columns


@pytest.mark.parametrize(
    ("strategy", "renamed"),
    [
        ("merge", "id"),
        ("historic", "v"),
        ("merge", "v"),
        ("historic", "id"),
    ],
)
@pytest.mark.nightly
def test_a_column_that_is_renamed_later_is_refused(lake: SmallLake, strategy: str, renamed: str) -> None:
    """ "Common Processing Pipeline", renames: rows that don't change would lack it, keys match nothing."""
    key, value = KEY, {"name": "v"}
    new = {"id": [{**KEY, "newname": "new"}, value], "v": [key, {"name": "v", "newname": "new"}]}
    plain, other = entity(strategy, columns=[key, value]), entity(strategy, columns=new[renamed])

    lake.load(plain, "s1", [{"id": 1, "v": "a"}])
    error = lake.fail(other, "s2", [{"id": 1, "v": "b"}])
    assert isinstance(error, SchemaDriftError)
    assert f"is called '{renamed}' in the table and 'new' now" in error.message

    back = entity(strategy, "back", columns=[key, value])
    lake.load(entity(strategy, "back", columns=new[renamed]), "s1", [{"id": 1, "v": "a"}])
    error = lake.fail(back, "s2", [{"id": 1, "v": "b"}])
    assert f"is called 'new' in the table and '{renamed}' now" in error.message


def test_local_times_without_offset_are_converted_by_a_transformation(lake: SmallLake) -> None:
    """ "Common Processing Pipeline", transformations: times without offset are UTC otherwise."""
    local = "to_utc_timestamp(at, 'Europe/Amsterdam')"
    crm = entity(
        columns=[KEY, {"name": "at", "datatype": "timestamp"}],
        transformations=[{"column": "at", "expression": local}],
    )
    lake.load(crm, "s1", [{"id": 1, "at": "2025-07-01 12:00:00"}, {"id": 2, "at": "2025-01-01 12:00:00"}])
    times = sorted(hours(count) for (count,) in lake.rows(crm, "at"))
    assert times == [datetime(2025, 1, 1, 11, tzinfo=UTC), datetime(2025, 7, 1, 10, tzinfo=UTC)]


@pytest.mark.parametrize(
    ("before", "later"),
    [
        pytest.param((pa.int64(), [4, 7, 9]), (pa.float64(), [9.0, 11.0]), id="number"),
        pytest.param(
            (pa.date32(), [date(2025, 1, day) for day in (1, 2, 3)]),
            (pa.timestamp("us", "UTC"), [datetime(2025, 1, day, tzinfo=UTC) for day in (3, 4)]),
            id="day",
            marks=pytest.mark.nightly,
        ),
    ],
)
@pytest.mark.nightly
def test_a_watermark_may_come_in_another_type(lake: SmallLake, before: Any, later: Any) -> None:
    """ "Delete Inference": pandas makes floats of whole numbers as soon as one is null."""
    mark = [{"column_name": "w", "expression": "${last_value}"}]
    orders = entity(watermark=mark, settings={"delete_missing": True})

    def rows(first: int, column: Any) -> list[dict[str, Any]]:
        return [{"id": first + n, "w": value} for n, value in enumerate(column[1])]

    lake.load(orders, "s1", rows(1, before), [("id", pa.int64()), ("w", before[0])])
    summary = lake.load(orders, "s2", rows(4, later), [("id", pa.int64()), ("w", later[0])])

    assert (summary.inserted, summary.inferred_deletes) == (2, 1)
    assert [n for n, deleted in lake.rows(orders, "id", "dlf_deleted") if deleted] == [3]
    ledger, application = lake.ledger, lake.bench(orders).application
    assert ledger.watermarks.last(application)["w"].python in {11, datetime(2025, 1, 4, tzinfo=UTC)}


@pytest.mark.nightly
def test_a_window_may_reach_further_back_than_the_last_value(lake: SmallLake) -> None:
    """ "Merge Strategy", Configuration: the watermark's expression."""
    orders = entity(
        watermark=[{"column_name": "day", "expression": "${LocalDate.addDays(${last_value}, -3)}"}],
        settings={"delete_missing": True},
    )
    days = {1: date(2024, 5, 10), 2: date(2024, 5, 8), 3: date(2024, 5, 7), 4: date(2024, 5, 6)}
    lake.load(orders, "s1", [{"id": n, "day": day} for n, day in days.items()])

    summary = lake.load(orders, "s2", [{"id": 1, "day": date(2024, 5, 11)}])

    assert summary.inferred_deletes == 2
    assert [n for n, deleted in lake.rows(orders, "id", "dlf_deleted") if deleted] == [2, 3]


def test_every_watermark_must_say_that_a_row_is_missing(lake: SmallLake) -> None:
    """Delete inference, several columns."""
    marks = [{"column_name": name, "expression": "${last_value}"} for name in ("a", "b")]
    orders = entity(watermark=marks, settings={"delete_missing": True})
    schema = [("id", pa.int64()), ("a", pa.int64()), ("b", pa.float64())]
    lake.load(orders, "s1", [{"id": n, "a": 10, "b": b} for n, b in ((1, 5.0), (2, 5.0), (3, 1.0))], schema)

    summary = lake.load(
        orders, "s2", [{"id": 1, "a": 11, "b": float("nan")}, {"id": 4, "a": 11, "b": 9.0}], schema
    )

    assert summary.inferred_deletes == 1
    assert [n for n, deleted in lake.rows(orders, "id", "dlf_deleted") if deleted] == [2]


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("csv", 'id,v\n1,"a, ""b"""\n2,\n'),
        # test_typeless_json processes JSON
        pytest.param("json", '{"id": "1", "v": "a, \\"b\\""}\n{"id": "2"}\n', marks=pytest.mark.nightly),
    ],
)
def test_slices_of_other_formats(lake: SmallLake, kind: str, text: str) -> None:
    things = entity(
        name=f"from_{kind}",
        columns=[{**KEY, "datatype": "integer"}, {"name": "n", "expression": "id * 2", "datatype": "long"}],
        settings={"bronze_format": kind},
    )
    folder = Path(things.places(lake.lake.settings).bronze)
    folder.mkdir(parents=True)
    (folder / f"s1.{kind}").write_text(text)

    assert lake.process(things).error is None
    assert lake.rows(things, "id", "v", "n") == [(1, 'a, "b"', 2), (2, None, 4)]


def test_line_breaks_inside_quotes_of_csv(lake: SmallLake) -> None:
    """ "Slices": a file's lines end as it says; other line breaks inside quotes are values."""
    things = entity(name="broken_lines", settings={"bronze_format": "csv"})
    folder = Path(things.places(lake.lake.settings).bronze)
    folder.mkdir(parents=True)
    (folder / "s1.csv").write_bytes(b'id,v\nA,"two\r\nb, lines"\nB,"5"" pipe"\n')
    (folder / "s2.csv").write_bytes(b'\xef\xbb\xbfid,v\r\nB,"a\nb\r\nc"\r\nC,5" pipe\r\n')
    (folder / "s3.csv").write_bytes(b'id,v\nD,"two\nE,x\nF,"y"\n')

    error = lake.process(things).error

    assert lake.rows(things, "id", "v") == [("A", "two\r\nb, lines"), ("B", "a\nb\r\nc"), ("C", '5" pipe')]
    assert isinstance(error, SliceError)
    assert "s3.csv, line 2: a quote that is opened here isn't closed" in error.message


@pytest.mark.nightly
def test_lines_that_end_in_several_ways_with_line_breaks_inside_quotes(lake: SmallLake) -> None:
    things = entity(name="mixed_lines", settings={"bronze_format": "csv"})
    folder = Path(things.places(lake.lake.settings).bronze)
    folder.mkdir(parents=True)
    (folder / "s1.csv").write_bytes(b'id,v\nA,"two\nlines"\r\n')

    assert "several ways: LF, CR LF" in str(lake.process(things).error)


def test_a_name_that_a_header_of_csv_has_twice(lake: SmallLake) -> None:
    things = entity(name="doubled_names", settings={"bronze_format": "csv"})
    folder = Path(things.places(lake.lake.settings).bronze)
    folder.mkdir(parents=True)
    (folder / "s1.csv").write_text("id,name,name\n1,a,b\n")

    assert "its header has the column 'name' twice" in str(lake.process(things).error)


@pytest.mark.nightly
def test_texts_with_more_digits_than_their_decimal(lake: SmallLake) -> None:
    """ "Common Processing Pipeline", Cast columns."""
    things = entity(
        name="digits",
        columns=[KEY, {"name": "v", "datatype": "decimal(5,1)"}, {"name": "w", "datatype": "decimal(38,2)"}],
        settings={"bronze_format": "csv"},
    )
    folder = Path(things.places(lake.lake.settings).bronze)
    folder.mkdir(parents=True)
    (folder / "s1").write_text("id,v,w\n1,1.2,1.20000\n2,-1.200,7\n3,12e-1,1E3\n4,.5,\n5,1250.e-2,0.010\n")

    assert lake.process(things).error is None
    assert [(str(v), str(w)) for _, v, w in lake.rows(things, "id", "v", "w")] == [
        ("1.2", "1.20"),
        ("-1.2", "7.00"),
        ("1.2", "1000.00"),
        ("0.5", "None"),
        ("12.5", "0.01"),
    ]

    (folder / "s2").write_text("id,v,w\n1,1.25,\n")
    assert "column 'v': the value '1.25' doesn't fit the type decimal(5,1)" in str(lake.process(things).error)


@pytest.mark.nightly  # test_typeless_json shows it for JSON
def test_columns_of_parquet_without_a_type_wait_for_one(lake: SmallLake) -> None:
    """ "Schema Drift": a column that holds only nulls has the table's type, or none yet."""
    declared = [KEY, {"name": "c", "newname": "code", "datatype": "date"}, {"name": "d", "newname": "text"}]
    things = entity(name="typeless", columns=declared)
    none = {name: pa.null() for name in "abcde"}
    lake.load(things, "s1", [{"id": 1}], [("id", pa.int64()), *none.items()])
    first = {field.name: field.dataType.simpleString() for field in lake.table(things).schema.fields}
    lists = {"a": pa.list_(pa.string()), "b": pa.float64()}
    lake.load(
        things, "s2", [{"id": 1, "a": ["x"], "b": 1.5}], [("id", pa.int64()), *{**none, **lists}.items()]
    )
    lake.warnings.clear()
    summary = lake.load(things, "s3", [{"id": 2}], [("id", pa.int64()), *none.items()])

    assert not {"a", "b", "e"} & set(first)
    assert (first["code"], first["text"]) == ("date", "string")
    assert (summary.inserted, lake.warnings) == (1, [])
    assert lake.rows(things, "id", "a", "b", "code", "text") == [
        (1, ["x"], 1.5, None, None),
        (2, None, None, None, None),
    ]
    assert "e" not in lake.table(things).columns


@pytest.mark.nightly
def test_columns_without_a_type_are_texts_where_columns_may_not_come_later(lake: SmallLake) -> None:
    things = entity(name="fixed", settings={"schema_drift": "fail"})
    lake.load(things, "s1", [{"id": 1}], [("id", pa.int64()), ("a", pa.null())])
    lake.load(things, "s2", [{"id": 1}], [("id", pa.int64()), ("a", pa.null())])
    lake.load(things, "s3", [{"id": 1, "a": "x"}])
    assert lake.rows(things, "id", "a") == [(1, "x")]


FEATURES = [
    pytest.param(
        "merge",
        {"delta.enableChangeDataFeed": "true", "delta.enableDeletionVectors": "false"},
        marks=pytest.mark.nightly,
    ),
    pytest.param(
        "historic",
        {"delta.columnMapping.mode": "name", "delta.enableRowTracking": "true"},
        marks=pytest.mark.nightly,
    ),
]


@pytest.mark.parametrize(("strategy", "properties"), FEATURES)
@pytest.mark.nightly
def test_tables_with_other_features_of_delta(
    lake: SmallLake, strategy: str, properties: dict[str, str]
) -> None:
    things = entity(strategy, name=f"rich_{strategy}", settings={"table_properties": properties})
    lake.load(things, "s1", [{"id": 1, "v": "a"}, {"id": 2, "v": "b"}])

    lake.load(things, "s2", [{"id": 1, "v": "c", "w": 1}, {"id": 3, "v": "d", "w": 2}])

    current = lake.table(things).where("dlf_IsCurrent") if strategy == "historic" else lake.table(things)
    assert sorted(tuple(row) for row in current.select("id", "v").collect()) == [(1, "c"), (2, "b"), (3, "d")]


@pytest.mark.nightly  # the machine of test_model processes three entities side by side
@pytest.mark.parametrize("each", [1, 2])
def test_entities_are_processed_side_by_side(lake: SmallLake, each: int) -> None:
    entities = [
        entity(strategy, name=f"{strategy}_{n}") for n in range(each) for strategy in ("merge", "historic")
    ]
    for things in entities:
        lake.put(things, "s1", [{"id": n, "v": things.name} for n in range(5)])
        lake.put(things, "s2", [{"id": n, "v": things.name} for n in range(3, 9)])

    with ThreadPoolExecutor(len(entities)) as pool:
        results = list(pool.map(lake.process, entities))

    for things, result in zip(entities, results, strict=True):
        assert result.error is None
        assert [done.summary.inserted for done in result.slices] == [5, 4]
        assert lake.rows(things, "id", "v") == [(n, things.name) for n in range(9)]
        assert lake.version(things) == 1


@pytest.mark.nightly
def test_a_wide_table_keeps_statistics_of_what_files_are_skipped_by(lake: SmallLake) -> None:
    """Delta keeps statistics of the first 32 columns only, unless it is told otherwise."""
    wide = entity("historic", columns=[{"name": "zz_id", "fieldroles": ["businesskey"]}])
    rows = [{**{f"c{n:03}": n for n in range(60)}, "zz_id": 1}]
    lake.load(wide, "s1", rows)
    lake.load(wide, "s2", [{**rows[0], "c000": 1}])

    names = lake.delta(wide).get_add_actions(flatten=True).column_names
    assert {"max.zz_id", "max.dlf_ValidFrom", "null_count.dlf_ValidTo"} <= set(names)


@pytest.mark.nightly
def test_a_key_whose_type_changes_is_refused(lake: SmallLake) -> None:
    """Every row would be new."""
    crm = entity()
    lake.load(crm, "s1", [{"id": 1}])
    error = lake.fail(crm, "s2", [{"id": "1"}])
    assert isinstance(error, SchemaDriftError)
    assert "number" in error.message


def test_hadoops_file_systems_are_listed_as_local_ones(lake: SmallLake) -> None:
    crm = entity()
    folder = lake.put(crm, "s 1%20", [{"id": 1}]).parent
    for name in ("s2/part", "s2/_SUCCESS", "s2/a=1/_x", "s2/_b=1/y", "s3/_temporary/z", "_s4"):
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(table_of([{"id": 1}]), file)

    def shape(files: Files) -> Any:
        return sorted(
            (each.name, each.is_folder, each.marks, [(file.name, file.size) for file in each.files])
            for each in files.entries(f"file:{folder}")
        )

    assert shape(HadoopFiles(lake.lake)) == shape(LocalFiles())
