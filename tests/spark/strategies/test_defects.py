"""Defects that were measured in Datalake Foundation (D1 to D23), each answered.

Headings are those of `processing-strategies.md`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pydantic import ValidationError
from tests.spark.strategies.bench import SmallLake, entity, hours, pa

from lakewright.errors import (
    BackdatedError,
    DataLossError,
    DuplicateBusinesskeyException,
    MigrationError,
    NullKeyError,
    SchemaDriftError,
    SpecError,
    UsageError,
)
from lakewright.manifest.verdict import Verdict
from lakewright.plan.permissions import Permissions

if TYPE_CHECKING:
    from lakewright.spec.models.entity import Entity

PAIR_KEY = [{"name": "x", "fieldroles": ["businesskey"]}, {"name": "y", "fieldroles": ["businesskey"]}]
QUIET = {"last_seen": "on_change"}
BY_PART = [{"name": "id", "fieldroles": ["businesskey"]}, {"name": "part", "fieldroles": ["partition"]}]


def things(*rows: tuple[Any, ...], names: str = "id v") -> list[dict[str, Any]]:
    return [dict(zip(names.split(), row, strict=True)) for row in rows]


def test_d1_a_new_column_closes_and_opens_versions_in_one_commit_and_d2_only_once(lake: SmallLake) -> None:
    """ "Historic Strategy", "Version Lifecycle"; "Schema Drift": processing goes on."""
    customer = entity("historic")
    lake.load(customer, "s1", things((1, "a"), (2, "b")), processing_time=hours(1).isoformat())
    before, at = lake.version(customer), hours(2).isoformat()

    slice_ = things((1, "a", "new"), (2, "b", None), names="id v w")
    summary = lake.load(customer, "s2", slice_, processing_time=at)

    assert lake.version(customer) == before + 1
    assert (summary.updated, summary.unchanged) == (1, 1)
    assert lake.rows(customer, "id", "w", "dlf_IsCurrent") == [
        (1, "new", True),
        (1, None, False),
        (2, None, True),
    ]
    assert_applied_again_it_changes_nothing(lake, customer, "s2", at)


def assert_applied_again_it_changes_nothing(lake: SmallLake, customer: Entity, name: str, at: str) -> None:
    before = lake.rows(customer)
    (item,) = [item for item in lake.items() if item.item_id.endswith(name)]
    lake.ledger.requeue(item.item_id, "again")
    again = lake.process(customer, processing_time=at, permissions=Permissions(allow_backdated=True))
    assert again.error is None
    assert lake.rows(customer) == before


MERGE_AT_NIGHT = pytest.param("merge", marks=pytest.mark.nightly)
HISTORIC_AT_NIGHT = pytest.param("historic", marks=pytest.mark.nightly)
FULL_AT_NIGHT = pytest.param("full", marks=pytest.mark.nightly)


@pytest.mark.nightly  # the test above applies a slice of Historic twice
@pytest.mark.parametrize("strategy", ["merge", "full"])
def test_d2_a_slice_applied_twice_changes_nothing(lake: SmallLake, strategy: str) -> None:
    customer = entity(strategy)
    lake.load(customer, "s1", things((1, "a"), (2, "b")), processing_time=hours(1).isoformat())
    lake.load(customer, "s2", things((1, "a"), (2, "c")), processing_time=hours(2).isoformat())
    assert_applied_again_it_changes_nothing(lake, customer, "s2", hours(2).isoformat())


@pytest.mark.parametrize("strategy", ["merge", HISTORIC_AT_NIGHT])
def test_d4_d5_d6_partition_values_match_whatever_they_are(lake: SmallLake, strategy: str) -> None:
    """ "Merge Strategy": matches by primary key, partition filters only limit where that is safe."""
    sales = entity(strategy, columns=BY_PART)
    lake.load(
        sales,
        "s1",
        things((1, None, 0), (2, 'say "hi"', 0), (3, "it's", 0), (4, "2023", 0), names="id part n"),
    )
    summary = lake.load(
        sales,
        "s2",
        things((1, None, 1), (2, 'say "hi"', 1), (3, "it's", 0), (4, "2024", 0), names="id part n"),
    )
    expected = [(1, None, 1), (2, 'say "hi"', 1), (3, "it's", 0), (4, "2024", 0)]
    assert lake.current(sales, "id", "part", "n") == expected
    assert summary.inserted == 0


def test_an_empty_text_as_partition_value_is_refused(lake: SmallLake) -> None:
    error = lake.fail(entity(columns=BY_PART), "s1", things((1, "", 0), names="id part n"))

    assert isinstance(error, SchemaDriftError)
    assert "part" in error.message


@pytest.mark.nightly  # test_keys_that_look_alike_are_others_and_equal_ones_are_one has a key of three columns
def test_d7_composite_keys_never_collide(lake: SmallLake) -> None:
    """ "Common Processing Pipeline": generate primary key."""
    pairs = entity(columns=PAIR_KEY, settings={"null_keys": "allow"})
    rows = things(
        ("a_b", "c", 1),
        ("a", "b_c", 2),
        (None, "c", 3),
        ("c", None, 4),
        ("", "c", 5),
        (None, None, 6),
        names="x y n",
    )
    lake.load(pairs, "s1", rows)
    changed = [{**row, "n": row["n"] + 10} for row in rows]

    summary = lake.load(pairs, "s2", changed)

    assert (summary.inserted, summary.changed) == (0, 6)
    assert sorted(n for (n,) in lake.rows(pairs, "n")) == [11, 12, 13, 14, 15, 16]


@pytest.mark.nightly  # test_hash compares the hashes of such rows
def test_d8_a_value_that_moves_is_a_change(lake: SmallLake) -> None:
    """ "Common Processing Pipeline": compute source hash."""
    moves = entity(settings=QUIET)
    names = "id p q"
    schema = [("id", pa.int64()), ("p", pa.string()), ("q", pa.string())]
    before = things((1, "ab", "c"), (2, "x", None), (3, None, None), (4, "s", "t"), names=names)
    after = things((1, "a", "bc"), (2, None, "x"), (3, "", None), (4, "s", "t"), names=names)
    lake.load(moves, "s1", before, schema)

    summary = lake.load(moves, "s2", after, schema)

    assert summary.changed == 3
    assert lake.rows(moves, *names.split()) == sorted((tuple(row.values()) for row in after), key=repr)


@pytest.mark.nightly  # test_hash compares the hashes of such rows
def test_d9_order_width_and_scale_of_columns_are_no_change(lake: SmallLake) -> None:
    from decimal import Decimal

    same = entity(settings=QUIET)
    narrow = [("id", pa.int32()), ("n", pa.int16()), ("d", pa.decimal128(5, 1)), ("f", pa.float64())]
    wide = [
        ("f", pa.float64()),
        ("d", pa.decimal128(12, 4)),
        ("n", pa.int64()),
        ("id", pa.int64()),
        ("new", pa.string()),
    ]
    numbers: list[tuple[Any, ...]] = [(1, 5, "1.5", 0.0), (2, -7, "0.0", float("nan")), (3, None, None, None)]
    again: dict[Any, Any] = {0.0: -0.0}
    lake.load(
        same, "s1", [{"id": i, "n": n, "d": d and Decimal(d), "f": f} for i, n, d, f in numbers], narrow
    )
    files = lake.files(same)

    summary = lake.load(
        same,
        "s2",
        [{"id": i, "n": n, "d": d and Decimal(d), "f": again.get(f, f)} for i, n, d, f in numbers],
        wide,
    )

    assert (summary.changed, summary.inserted, summary.delta_version) == (0, 0, None)
    assert lake.files(same) == files


def test_d10_d11_deleted_rows(lake: SmallLake) -> None:
    """ "Merge Strategy", table of conditions: deleted rows are flagged, and revived when they are back."""
    names, schema = "id v dlf_deleted", [("id", pa.int64()), ("v", pa.string()), ("dlf_deleted", pa.bool_())]
    crm = entity()
    first = lake.load(crm, "s1", things((1, "a", None), (2, "b", False), (3, "c", True), names=names), schema)
    assert (first.inserted, first.deleted, first.without_row) == (2, 1, 1)

    second = lake.load(crm, "s2", things((1, "a", True), (2, "b", None), (9, "z", True), names=names), schema)
    assert (second.deleted, second.updated, second.inserted, second.without_row) == (2, 1, 0, 1)
    assert lake.rows(crm, "id", "dlf_deleted") == [(1, True), (2, False)]

    third = lake.load(crm, "s3", things((1, "a", None), names=names), schema)
    assert (third.updated, third.changed) == (1, 1)
    assert lake.rows(crm, "id", "dlf_deleted") == [(1, False), (2, False)]


def test_a_first_merge_into_a_table_of_full_leaves_out_what_arrives_deleted(lake: SmallLake) -> None:
    """Rules of strategies, "Merge": a record that arrives deleted is not inserted by a first run."""
    from lakewright.spec.models.entity import Strategy

    names, schema = "id v dlf_deleted", [("id", pa.int64()), ("v", pa.string()), ("dlf_deleted", pa.bool_())]
    crm, rows = entity("full"), things((1, "a", False), (2, "b", True), names=names)
    first = lake.load(crm, "s1", rows, schema, strategy=Strategy.MERGE)
    assert (first.inserted, first.deleted, first.without_row) == (1, 1, 1)
    assert lake.rows(crm, "id", "dlf_deleted") == [(1, False)]


def test_d12_a_delete_closes_a_version_and_opens_none(lake: SmallLake) -> None:
    """ "Historic Strategy": a record that comes back opens a new version; the gap stays."""
    names, schema = "id v dlf_deleted", [("id", pa.int64()), ("v", pa.string()), ("dlf_deleted", pa.bool_())]
    crm = entity("historic")
    slices: list[list[tuple[Any, ...]]] = [
        [(1, "a", None)],
        [(1, "a", True), (7, "x", True)],
        [(1, "a", False)],
    ]
    for hour, rows in enumerate(slices, start=1):
        lake.load(
            crm, f"s{hour}", things(*rows, names=names), schema, processing_time=hours(hour).isoformat()
        )

    assert lake.rows(
        crm, "id", "dlf_ValidFrom", "dlf_ValidTo", "dlf_IsCurrent", "dlf_deleted", "dlf_lastSeen"
    ) == [
        (1, 1.0, 2.0, False, True, 1.0),
        (1, 3.0, None, True, False, 3.0),
    ]


@pytest.mark.nightly  # test_column_time.py refuses one
def test_d13_a_processing_time_that_goes_back_is_refused_before_anything_is_locked(lake: SmallLake) -> None:
    """ "Processing Time Override", "Caution"."""
    crm = entity("historic")
    lake.load(crm, "s1", things((1, "a"), (2, "b")), processing_time=hours(5).isoformat())
    lake.put(crm, "s2", things((1, "b")))
    for text in (hours(5).isoformat(), hours(4).isoformat()):
        with pytest.raises(BackdatedError):
            lake.process(crm, processing_time=text)
    assert [item.verdict(lake.bench(crm).application) for item in lake.items()] == [
        Verdict.PROCESSED,
        Verdict.READY,
    ]

    error = lake.process(
        crm, processing_time=hours(4).isoformat(), permissions=Permissions(allow_backdated=True)
    ).error

    assert isinstance(error, BackdatedError)
    assert len(lake.rows(crm)) == 2


@pytest.mark.nightly
def test_d13_leave_for_a_backdated_time_holds_only_for_records_that_it_orders_right(lake: SmallLake) -> None:
    crm = entity("historic")
    lake.load(crm, "s1", things((1, "a")), processing_time=hours(1).isoformat())
    lake.load(crm, "s2", things((2, "b")), processing_time=hours(5).isoformat())

    lake.load(
        crm,
        "s3",
        things((1, "c")),
        processing_time=hours(3).isoformat(),
        permissions=Permissions(allow_backdated=True),
    )

    assert lake.rows(crm, "id", "v", "dlf_ValidFrom", "dlf_ValidTo") == [
        (1, "a", 1.0, 3.0),
        (1, "c", 3.0, None),
        (2, "b", 5.0, None),
    ]


def test_one_processing_time_for_several_slices_is_refused(lake: SmallLake) -> None:
    crm = entity("historic")
    lake.put(crm, "s1", things((1, "a")))
    lake.put(crm, "s2", things((1, "b")))

    with pytest.raises(UsageError):
        lake.process(crm, processing_time=hours(1).isoformat())


def test_d14_an_empty_slice_does_not_empty_a_table(lake: SmallLake) -> None:
    """ "Full Strategy"."""
    schema = [("id", pa.int64()), ("v", pa.string())]
    codes = entity("full")
    lake.load(codes, "s1", things((1, "a")), schema)

    error = lake.fail(codes, "s2", [], schema)

    assert isinstance(error, DataLossError)
    assert len(lake.rows(codes)) == 1
    (failed,) = [item for item in lake.items() if item.failed is not None]
    lake.ledger.resolve(failed.item_id, "it is empty")
    allowed = entity("full", settings={"allow_empty": True})
    (done,) = lake.process(allowed).slices
    assert done.summary.records_in_slice == 0
    assert lake.rows(allowed) == []


@pytest.mark.nightly  # a rare slice; test_d14 has an empty one later
@pytest.mark.parametrize("strategy", ["historic", MERGE_AT_NIGHT, FULL_AT_NIGHT])
def test_an_empty_first_slice_makes_an_empty_table(lake: SmallLake, strategy: str) -> None:
    schema = [("id", pa.int64()), ("v", pa.string())]
    codes = entity(strategy)
    assert lake.load(codes, "s1", [], schema).delta_version == 0
    assert lake.rows(codes) == []
    assert lake.load(codes, "s2", things((1, "a")), schema).inserted == 1


@pytest.mark.parametrize(
    ("scope", "flagged"),
    [
        ("closed", [2]),
        pytest.param("open", [], marks=pytest.mark.nightly),
        pytest.param("full", [2, 4], marks=pytest.mark.nightly),
    ],
)
def test_d15_delete_inference_looks_only_into_the_window(
    lake: SmallLake, scope: str, flagged: list[int]
) -> None:
    """Delete inference: rows in the window that the slice lacks, and no others; null watermarks stay."""
    orders = entity(
        watermark=[{"column_name": "at", "expression": "${last_value}"}],
        settings={"delete_missing": True, "delete_scope": scope},
    )
    schema = [("id", pa.int64()), ("at", pa.int64())]
    lake.load(orders, "s1", things((1, 100), (2, 100), (3, None), (4, 50), names="id at"), schema)

    summary = lake.load(orders, "s2", things((1, 200), (3, None), names="id at"), schema)

    assert summary.inferred_deletes == len(flagged)
    assert [key for key, deleted in lake.rows(orders, "id", "dlf_deleted") if deleted] == flagged


@pytest.mark.nightly  # test_model.py compares watermarks after each slice
def test_d16_watermarks_are_typed_and_never_go_back(lake: SmallLake) -> None:
    from datetime import UTC, datetime

    orders = entity(watermark=[{"column_name": "at", "expression": "${last_value}"}])
    schema = [("id", pa.int64()), ("at", pa.timestamp("us", tz="UTC"))]
    latest, earlier = datetime(2024, 5, 1, 0, 0, 0, 123457, tzinfo=UTC), datetime(2024, 4, 1, tzinfo=UTC)
    application = lake.bench(orders).application
    slices: list[list[datetime | None]] = [[latest], [earlier, None]]
    for number, times in enumerate(slices, start=1):
        rows = things(*((10 * number + n, at) for n, at in enumerate(times)), names="id at")
        lake.load(orders, f"s{number}", rows, schema)
        assert lake.ledger.watermarks.last(application)["at"].python == latest

    lake.fail(orders, "s3", things((1, None), (1, datetime(2025, 1, 1, tzinfo=UTC)), names="id at"), schema)
    assert lake.ledger.watermarks.last(application)["at"].python == latest


def test_d17_merge_without_a_business_key_is_an_error_of_the_project() -> None:
    with pytest.raises(ValidationError, match="businesskey"):
        entity("merge", columns=[{"name": "id"}])


@pytest.mark.nightly  # test_a_table_is_not_written_under_another_declaration forces two onto Merge
def test_d18_a_strategy_forced_onto_rows_of_another_is_refused(lake: SmallLake) -> None:
    from lakewright.spec.models.entity import Strategy

    merged, history = entity("merge", name="merged"), entity("historic", name="history")
    lake.load(merged, "s1", things((1, "a")))
    lake.load(history, "s1", things((1, "a")))
    cases = [
        (merged, Strategy.HISTORIC, MigrationError),
        (history, Strategy.MERGE, MigrationError),
        (merged, Strategy.FULL, DataLossError),
        (history, Strategy.FULL, DataLossError),
    ]
    for number, (target, strategy, kind) in enumerate(cases, start=2):
        assert isinstance(lake.fail(target, f"s{number}", things((1, "b")), strategy=strategy), kind)
    assert not [item for item in lake.items() if item.failed is not None]
    assert (len(lake.rows(merged)), len(lake.rows(history))) == (1, 1)


@pytest.mark.nightly
def test_d18_leave_for_data_loss_lets_full_replace_a_history(lake: SmallLake) -> None:
    from lakewright.spec.models.entity import Strategy

    history = entity("historic", name="history")
    lake.load(history, "s1", things((1, "a")))
    lake.load(
        history, "s9", things((2, "n")), strategy=Strategy.FULL, permissions=Permissions(allow_data_loss=True)
    )
    assert lake.rows(history, "id", "dlf_IsCurrent") == [(2, True)]
    assert lake.load(history, "t1", things((2, "m"))).updated == 1


@pytest.mark.parametrize(
    "expression",
    [
        "reflect('java.lang.System', 'exit', '1')",
        "(select 1)",
        "exists(select * from parquet.`/etc`)",
        "input_file_name()",
    ],
)
def test_d19_expressions_reach_nothing_but_the_row(lake: SmallLake, expression: str) -> None:
    sly = entity(transformations=[{"column": "w", "expression": expression}])

    error = lake.fail(sly, "s1", things((1, "a")))

    assert isinstance(error, SpecError)


def test_d21_columns_come_and_go_and_values_fit_as_the_policy_says(lake: SmallLake) -> None:
    """ "Schema Drift": logged as warnings; processing continues with the source's schema."""
    ignoring, failing, evolving = (
        entity(settings={"schema_drift": policy, **QUIET}) for policy in ("ignore", "fail", "evolve")
    )
    schema = [("id", pa.int64()), ("v", pa.string()), ("n", pa.int32())]
    lake.load(ignoring, "s1", [{"id": 1, "v": "a", "n": 1}], schema)
    before = lake.rows(ignoring)

    assert lake.load(ignoring, "s2", [{"id": 1, "v": "a", "n": 1, "w": "w"}]).changed == 0
    assert "w" not in lake.arrow(ignoring).column_names
    error = lake.fail(ignoring, "s3", [{"id": 2, "v": "b", "n": 3_000_000_000}])
    assert isinstance(error, SchemaDriftError)
    assert "'n'" in error.message
    assert "3000000000" in error.message
    assert lake.rows(ignoring) == before
    lake.put_aside()
    assert isinstance(lake.fail(failing, "s4", [{"id": 2, "v": "b", "n": 2, "w": "w"}]), SchemaDriftError)
    lake.put_aside()

    lake.warnings.clear()
    lake.load(evolving, "s5", [{"id": 2, "n": 3_000_000_000, "w": "w"}])

    assert lake.rows(evolving, "id", "v", "n", "w") == [(1, "a", 1, None), (2, None, 3_000_000_000, "w")]
    assert dict(lake.table(evolving).dtypes)["n"] == "bigint"
    (item,) = [item for item in lake.items() if item.item_id.endswith("s5")]
    drift = lake.store.records(item.item_id)[-1].content["drift"]
    assert drift == {"added": ["w"], "removed": ["v"], "retyped": {"n": ["int", "bigint"]}}
    assert any("'w' is new" in text for text in lake.warnings)


@pytest.mark.nightly
@pytest.mark.parametrize("strategy", ["historic", "merge"])
def test_d21_a_value_that_is_not_written_need_not_fit(lake: SmallLake, strategy: str) -> None:
    """Records that arrive deleted, known and unknown."""
    fixed = entity(strategy, settings={"schema_drift": "ignore"})
    lake.load(fixed, "s1", [{"id": 1, "n": 1}], [("id", pa.int64()), ("n", pa.int32())])

    gone = {"n": 3_000_000_000, "dlf_deleted": True}
    summary = lake.load(fixed, "s2", [{"id": 1, **gone}, {"id": 2, **gone}])

    assert summary.deleted + summary.closed == 2
    assert lake.rows(fixed, "id", "n", "dlf_deleted") == [(1, 1, True)]


@pytest.mark.nightly  # in the test above a column grows that is no key
@pytest.mark.parametrize("strategy", ["merge", "historic"])
def test_d21_a_key_grows_with_its_column(lake: SmallLake, strategy: str) -> None:
    growing = entity(strategy)
    lake.load(growing, "s1", [{"id": 1, "v": "a"}], [("id", pa.int32()), ("v", pa.string())])

    summary = lake.load(growing, "s2", [{"id": 1, "v": "a"}, {"id": 3_000_000_000, "v": "b"}])

    assert summary.inserted == 1
    assert summary.changed == 0
    assert lake.rows(growing, "id", "v") == [(1, "a"), (3_000_000_000, "b")]


def test_d22_times_are_instants(lake: SmallLake) -> None:
    """ "Processing Time Override", "Behavior"."""
    berlin = SmallLake(lake.spark, lake.root / "berlin", settings={"timezone": "Europe/Berlin"})
    crm = entity("historic")
    berlin.load(crm, "s1", things((1, "a")), processing_time="2024-01-01T12:00:00")
    assert berlin.rows(crm, "dlf_ValidFrom") == [(11.0,)]
    berlin.load(crm, "s2", things((1, "b")), processing_time="2024-01-01T12:00:00Z")
    assert berlin.rows(crm, "dlf_ValidFrom", "dlf_ValidTo") == [(11.0, 12.0), (12.0, None)]

    berlin.now = hours(20)
    berlin.load(crm, "s3", things((1, "c")), processing_time="next tuesday", is_time_lenient=True)
    assert any("next tuesday" in text for text in berlin.warnings)
    assert len(berlin.rows(crm)) == 3


@pytest.mark.parametrize("strategy", ["historic", MERGE_AT_NIGHT, FULL_AT_NIGHT])
def test_duplicate_keys_fail_before_any_write(lake: SmallLake, strategy: str) -> None:
    """ "Duplicate Business Keys": also where the rows are equal, and in a first slice."""
    crm = entity(strategy)
    error = lake.fail(crm, "s1", things((7, "a"), (7, "a")))
    assert isinstance(error, DuplicateBusinesskeyException)
    assert "id=7" in error.message
    assert not lake.files(crm)


def test_null_keys_are_refused_or_a_value_like_others(lake: SmallLake) -> None:
    schema = [("id", pa.int64()), ("v", pa.string())]
    error = lake.fail(entity(name="strict"), "s1", things((None, "a"), (1, "b")), schema)
    assert isinstance(error, NullKeyError)
    assert error.details["records"] == 1

    lax = entity("historic", name="lax", settings={"null_keys": "allow"})
    for number in range(2):
        lake.load(lax, f"s{number}", things((None, "a"), (1, "b")), schema)
    assert lake.rows(lax, "id", "v") == [(1, "b"), (None, "a")]
