"""What `undo`, `rebuild` and `rehearse` return, as a notebook or a prompt shows it."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, cast

import pytest

from lakewright.cli.commands.rewind import rebuild_page
from lakewright.cli.render.look_back import difference_blocks
from lakewright.errors import SliceError
from lakewright.slices.rewind.difference import TableDifference
from lakewright.spec.models.places import Address
from lakewright.usecases.process_slices import RehearsedSlice
from lakewright.usecases.rewinds import Rebuilt, Undone

CHANGED = TableDifference(equal=1_200, gone=1, new=0)
SEEN = TableDifference(equal=2, gone=0, new=0, seen=3)


@pytest.mark.parametrize(
    ("difference", "version", "shown"),
    [
        (CHANGED, None, "<Undone orders/d3 planned: 1 row gone, 0 new, 1,200 equal>"),
        (
            SEEN,
            None,
            "<Undone orders/d3 planned: 0 rows gone, 0 new, 5 equal (3 of them with another lastSeen)>",
        ),
        (None, None, "<Undone orders/d3 planned>"),
        (None, 7, "<Undone orders/d3 done by version 7>"),
    ],
)
def test_an_undo_says_whether_it_was_done_and_what_changes(
    difference: TableDifference | None, version: int | None, shown: str
) -> None:
    plan = cast("Any", SimpleNamespace(slice="d3"))
    assert repr(Undone("orders", plan, difference, version)) == shown


@pytest.mark.parametrize(
    ("difference", "version", "shown"),
    [
        (CHANGED, None, "<Rebuilt orders checked: 1 row gone, 0 new, 1,200 equal>"),
        (CHANGED, 7, "<Rebuilt orders done by version 7: 1 row gone, 0 new, 1,200 equal>"),
        (None, 0, "<Rebuilt orders done by version 0>"),
    ],
)
def test_a_rebuild_says_whether_it_was_swapped_in_and_what_differs(
    difference: TableDifference | None, version: int | None, shown: str
) -> None:
    assert repr(Rebuilt("orders", cast("Any", None), difference, version)) == shown


@pytest.mark.parametrize(
    ("place", "removal"),
    [
        (Address(location="/lake/orders__rebuild"), "delete that folder"),
        (Address(name="silver.orders__rebuild"), "DROP TABLE `silver`.`orders__rebuild`"),
    ],
)
def test_a_checked_rebuild_says_where_its_table_is_and_how_to_remove_it(place: Address, removal: str) -> None:
    plan = cast(
        "Any",
        SimpleNamespace(
            replay=SimpleNamespace(base=None, slices=("d1",), foreign=(), skipped_names=["d2"]),
            included_times={},
            requeued=(),
            missing=(),
        ),
    )
    checked = Rebuilt("orders", plan, None, beside=place)
    told = f"the new table stays in {place}: a rebuild of the same slices uses it, any other removes it; "
    told += f"to remove it now, {removal}"
    shown = [str(each) for each in rebuild_page(checked)][1:]
    assert shown == ["d2 was skipped: the new table has none of its changes", told]
    assert f"<p>{told}</p>" in checked._repr_html_()
    assert told not in Rebuilt("orders", plan, None, 7).words


def test_rows_that_differ_in_last_seen_alone_are_told_among_those_that_stay() -> None:
    """Merge touches each row of a slice: all of them went and came back, although nothing had changed."""
    (said,) = difference_blocks(SEEN, "goes", "comes back")
    assert str(said) == "5 rows stay (3 of them with another lastSeen)"
    assert (SEEN.as_json()["rows_equal"], SEEN.as_json()["rows_seen"], SEEN.is_none) == (2, 3, False)


@pytest.mark.parametrize(
    ("counts", "error", "shown"),
    [
        ({"inserted": 2, "updated": 0, "deleted": 1}, None, "merge inserted=2 deleted=1>"),
        ({"inserted": 0}, None, "merge changes nothing>"),
        (None, SliceError("a key occurs twice"), "merge fails: a key occurs twice>"),
    ],
)
def test_a_rehearsal_says_what_the_slice_would_change_or_why_it_fails(
    counts: dict[str, int] | None, error: SliceError | None, shown: str
) -> None:
    rehearsed = RehearsedSlice(
        entity="orders",
        slice="d3",
        item_id="file:///lake/d3",
        state="ready",
        strategy="merge",
        processing_time=datetime(2024, 5, 3, tzinfo=UTC),
        version=None,
        summary=None,
        counts=counts,
        rows=(),
        deletes=None,
        notes=(),
        warnings=(),
        error=error,
    )
    assert repr(rehearsed) == f"<RehearsedSlice orders/d3 {shown}"
