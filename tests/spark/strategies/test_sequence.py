"""A11: `sequence_by` and `duplicates`, in each strategy, with deletes and with late slices."""

from __future__ import annotations

from typing import Any

import pytest
from tests.spark.strategies.bench import SmallLake, entity, hours, pa
from tests.spark.strategies.rewinding import rebuild_in

from lakewright.errors import DataLossError, DuplicateBusinesskeyException, SchemaDriftError
from lakewright.plan.permissions import Permissions
from lakewright.slices.pending_slices import find_pending
from lakewright.slices.validation import preview_next_slice

SCHEMA = [("id", pa.int64()), ("v", pa.string()), ("n", pa.int64()), ("dlf_deleted", pa.bool_())]
LATEST = {"sequence_by": "n", "duplicates": "latest"}
LATE = Permissions(allow_late=True)


def rows(*values: tuple[Any, ...]) -> list[dict[str, Any]]:
    """Return rows of key, value, number, and whether they arrive deleted."""
    return [dict(zip(("id", "v", "n", "dlf_deleted"), value, strict=False)) for value in values]


def test_a_merge_keeps_what_is_later_in_the_sequence(lake: SmallLake) -> None:
    """A11: older rows lose, whether they come in the same slice, in a later one, or in a late one."""
    crm = entity(name="crm", settings={**LATEST, "delete_missing": True, "delete_scope": "full"})
    first = rows((1, "new", 9), (1, "old", 3), (2, "a", None), (3, "a", 5), (3, "a", 5), (4, "a", 1))

    summary = lake.load(crm, "s1", first, SCHEMA)

    assert (summary.records_in_slice, summary.inserted, summary.superseded) == (6, 4, 2)
    assert lake.rows(crm, "id", "v", "n") == [(1, "new", 9), (2, "a", None), (3, "a", 5), (4, "a", 1)]

    # 1 is older, 2 gets its first number, 3 is a tie, and 4 is missing from the slice.
    summary = lake.load(crm, "s3", rows((1, "older", 8), (2, "b", 0), (3, "b", 5)), SCHEMA)
    assert (summary.outdated, summary.changed, summary.inferred_deletes) == (1, 2, 1)
    kept = [(1, "new", 9, False), (2, "b", 0, False), (3, "b", 5, False), (4, "a", 1, True)]
    assert lake.rows(crm, "id", "v", "n", "dlf_deleted") == kept

    # A late slice: no row without a number wins over one with a number, a later slice lacked 4, and nothing
    # is inferred from what the slice lacks.
    lake.put(crm, "s2", rows((2, "x", None), (4, "x", 7), (5, "x", 2)), SCHEMA)
    pending = find_pending(lake.bench(crm), crm)
    assert preview_next_slice(lake.bench(crm), crm, pending) is None
    (done,) = lake.process(crm, permissions=LATE).slices
    assert done.warnings == (
        "the slice is late: with sequence_by, no deletes are inferred from a late slice",
    )
    assert (done.summary.outdated, done.summary.inserted, done.summary.inferred_deletes) == (2, 1, 0)
    assert lake.rows(crm, "id", "v", "n", "dlf_deleted") == [*kept, (5, "x", 2, False)]

    # What a newer slice has again is back, with the number that it had.
    summary = lake.load(crm, "s4", rows(*(each[:3] for each in kept)), SCHEMA)
    assert (summary.outdated, summary.changed, summary.inferred_deletes) == (0, 1, 1)
    assert lake.rows(crm, "id", "dlf_deleted")[3] == (4, False)


@pytest.mark.nightly
def test_a_delete_takes_its_number_in_the_sequence(lake: SmallLake) -> None:
    """A11: nothing older revives the record; something later does."""
    crm = entity(name="crm", settings={**LATEST, "delete_missing": True, "delete_scope": "full"})
    lake.load(crm, "s1", rows((1, "new", 9), (2, "b", 0)), SCHEMA)
    summary = lake.load(crm, "s3", rows((1, None, 20, True), (2, "b", 0)), SCHEMA)
    assert (summary.deleted, summary.updated) == (1, 1)
    lake.put(crm, "s2", rows((1, "between", 15)), SCHEMA)
    (done,) = lake.process(crm, permissions=LATE).slices
    assert done.summary.outdated == 1
    assert lake.rows(crm, "id", "v", "n", "dlf_deleted")[0] == (1, "new", 20, True)
    summary = lake.load(crm, "s4", rows((1, "back", 21), (2, "b", 0)), SCHEMA)
    assert summary.changed == 1


@pytest.mark.nightly
def test_a_history_has_no_version_of_what_came_too_late(lake: SmallLake) -> None:
    """A11: versions follow the sequence; what lost leaves no trace, and intervals stay whole."""
    crm = entity("historic", name="crm", settings=LATEST)
    at = [{"processing_time": hours(hour).isoformat()} for hour in range(5)]
    lake.load(crm, "s1", rows((1, "a", 1), (1, "b", 5), (2, "a", 5)), SCHEMA, **at[1])

    summary = lake.load(crm, "s3", rows((1, "c", 7), (1, "lost", 6), (2, None, 8, True)), SCHEMA, **at[2])
    assert (summary.updated, summary.closed, summary.superseded) == (1, 1, 1)

    lake.put(crm, "s2", rows((1, "late", 6), (2, "late", 7)), SCHEMA)
    (done,) = lake.process(crm, permissions=LATE, **at[3]).slices
    assert (done.summary.outdated, done.summary.delta_version) == (2, None)

    summary = lake.load(crm, "s4", rows((1, "d", 7), (2, "again", 8)), SCHEMA, **at[4])
    assert (summary.updated, summary.inserted) == (1, 1)
    names = ("id", "v", "n", "dlf_ValidFrom", "dlf_ValidTo", "dlf_deleted")
    assert lake.rows(crm, *names) == [
        (1, "b", 5, 1.0, 2.0, False),
        (1, "c", 7, 2.0, 4.0, False),
        (1, "d", 7, 4.0, None, False),
        (2, "a", 8, 1.0, 2.0, True),
        (2, "again", 8, 4.0, None, False),
    ]


def test_full_uses_the_latest_row_and_a_late_slice_replaces_nothing_newer(lake: SmallLake) -> None:
    """A11: Full replaces as always, but not rows that are newer than all of a late slice."""
    stock = entity("full", name="stock", settings=LATEST)
    summary = lake.load(stock, "s2", rows((1, "a", 1), (1, "b", 2), (2, "a", 9)), SCHEMA)
    assert (summary.inserted, summary.superseded) == (2, 1)
    assert lake.load(stock, "s3", rows((1, "c", 1)), SCHEMA).inserted == 1

    error = lake.fail(stock, "s1", rows((1, "late", 0), (2, "late", None)), SCHEMA, permissions=LATE)

    assert isinstance(error, DataLossError)
    assert "1 row whose n is greater than that of all its own" in error.message
    assert lake.rows(stock, "id", "v") == [(1, "c")]


def test_rows_that_the_sequence_cannot_order_fail_the_slice(lake: SmallLake) -> None:
    """A11: two different latest rows, a missing column, and a type without an order."""
    crm = entity(settings=LATEST)

    error = lake.fail(crm, "s1", rows((1, "a", 3), (1, "b", 3), (1, "c", 2), (2, "a", 1)), SCHEMA)

    assert isinstance(error, DuplicateBusinesskeyException)
    assert error.message == (
        "1 business key has several latest rows in the slice, which differ although their value of n is the "
        "same: id=1"
    )
    lake.put_aside()
    refusing = entity(name="refusing", settings={"sequence_by": "n"})
    error = lake.fail(refusing, "s1", rows((1, "a", 3), (1, "b", 4)), SCHEMA)
    assert isinstance(error, DuplicateBusinesskeyException)
    missing = entity(name="missing", settings={"sequence_by": "m"})
    assert "'m'" in lake.fail(missing, "s1", rows((1, "a", 3)), SCHEMA).message
    listed = entity(name="listed", settings={"sequence_by": "m"})
    error = lake.fail(listed, "s1", [{"id": 1, "m": {"x": 1}}])
    assert isinstance(error, SchemaDriftError)
    assert "has the type struct<x:bigint>, whose values have no order" in error.message


@pytest.mark.nightly  # test_a_merge_keeps_what_is_later_in_the_sequence deletes a record
@pytest.mark.parametrize("last_seen", ["column", "on_change"])
def test_a_second_delete_moves_the_record_on_in_the_sequence(lake: SmallLake, last_seen: str) -> None:
    """A11: what is deleted at 3 and again at 7 isn't brought back by a late row at 5."""
    crm = entity(settings={"sequence_by": "n", "last_seen": last_seen})
    for name, values in (("s1", (1, "a", 1)), ("s2", (1, None, 3, True)), ("s4", (1, None, 7, True))):
        lake.load(crm, name, rows(values), SCHEMA)

    lake.put(crm, "s3", rows((1, "late", 5)), SCHEMA)
    (done,) = lake.process(crm, permissions=LATE).slices

    assert done.summary.outdated == 1
    assert lake.rows(crm, "id", "n", "dlf_deleted") == [(1, 7, True)]


def test_a_delete_of_a_record_without_a_row_is_kept_as_a_tombstone(lake: SmallLake) -> None:
    """A11: nothing older brings the record back: neither a late slice, nor a rebuild in another order."""
    crm = entity(settings={"sequence_by": "n", "late_slices": "end"})
    lake.load(crm, "s2", rows((1, "a", 3), (5, "gone", 4, True), (6, "gone", 4, True)), SCHEMA)
    summary = lake.load(crm, "s3", rows((7, "gone", 4, True)), SCHEMA)
    assert (summary.inserted, summary.deleted, summary.without_row) == (0, 1, 1)

    lake.put(crm, "s1", rows((1, "a", 1), (5, "b", 2), (6, "later", 5), (7, "b", 1)), SCHEMA)
    (done,) = lake.process(crm).slices

    assert (done.summary.outdated, done.summary.changed) == (3, 1)
    table = [(1, "a", 3, False), (5, None, 4, True), (6, "later", 5, False), (7, None, 4, True)]
    assert lake.rows(crm, "id", "v", "n", "dlf_deleted") == table
    rebuild_in(lake, crm)
    assert lake.rows(crm, "id", "v", "n", "dlf_deleted") == table
