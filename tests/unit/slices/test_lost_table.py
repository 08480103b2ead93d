"""A table that is gone, or older than the manifest, although slices count as processed into it."""

from __future__ import annotations

from datetime import timedelta
from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest

from lakewright.errors import TargetError
from lakewright.errors.phrase import Command
from lakewright.lake.delta_log import ABSENT, TableState
from lakewright.manifest.item import Item
from lakewright.manifest.lease import Holder
from lakewright.manifest.ledger import DiscoveredSlice, Ledger
from lakewright.manifest.record import Application, Author
from lakewright.slices import lost_table
from lakewright.slices.chain import SliceChain, counter_of
from lakewright.slices.lost_table import check_table_not_lost, find_loss
from lakewright.spec.models.places import Address
from lakewright.stores.memory import MemoryStore

SILVER = Address(location="/lake/silver/orders")
LAKE: Any = SimpleNamespace(settings=None)
ENTITY: Any = SimpleNamespace(
    name="orders", identity="orders", called="orders", places=lambda _: SimpleNamespace(silver=SILVER)
)


@pytest.mark.parametrize(
    ("looks", "is_refused"), [([ABSENT, ABSENT], True), ([ABSENT, *2 * [TableState(True, version=0)]], False)]
)
def test_a_table_is_lost_only_if_it_is_still_missing_after_a_processed_slice_was_found(
    monkeypatch: pytest.MonkeyPatch, looks: list[TableState], is_refused: bool
) -> None:
    """Another run makes the table and records its first slice between the two questions."""
    answers = iter(looks)
    monkeypatch.setattr(lost_table, "observe_table", lambda *_: next(answers))
    monkeypatch.setattr(lost_table, "rebuild_command", lambda _: Command("rebuild", "orders"))
    slices = SimpleNamespace(
        lake=LAKE,
        silver=SILVER,
        entity=ENTITY,
        first_processed=Item("file:///bronze/orders/d1.csv"),
        last_number=1,
        last_given_number=1,
    )
    context: Any = SimpleNamespace(chain=lambda _: slices)
    if is_refused:
        with pytest.raises(TargetError, match="no table exists there"):
            check_table_not_lost(context, ENTITY)
    else:
        check_table_not_lost(context, ENTITY)
    assert list(answers) == []


APPLICATION = Application.named("lakewright/shop/orders")


def chain(*versions: int | None) -> SliceChain:
    """Return slices, each with the version that its commit made; None if it changed nothing."""
    ids = map(str, count(1))
    ledger = Ledger(MemoryStore(), Author.named("test"), ids=lambda: next(ids))
    holder = Holder("here", 1, "then", "r1")
    for number, version in enumerate(versions, start=1):
        item = f"file:///bronze/orders/d{number}.csv"
        ledger.discover([DiscoveredSlice(item, APPLICATION, "orders", f"d{number}.csv", {})])
        claim = ledger.acquire(
            item, APPLICATION, holder, duration=timedelta(seconds=60), token_counter=counter_of(SILVER)
        )
        ledger.processed(claim, {"delta_version": version})
    return SliceChain(LAKE, ledger, ENTITY, APPLICATION)


@pytest.mark.parametrize(
    ("versions", "last", "lacked"),
    [
        ((0, 1, 2), 3, None),
        ((0, 1, 2), 1, "2 slices, such as d3.csv, have"),
        ((0, 1, 2), 2, "1 slice, such as d3.csv, has"),
        ((0, 1, 2), None, "3 slices, such as d3.csv, have"),
        ((0, None, None), 1, None),  # the table never got a commit of a slice that changed nothing
        ((0, 1, None), 1, "1 slice, such as d2.csv, has"),
    ],
)
def test_a_table_that_lacks_commits_of_processed_slices_is_an_older_copy(
    monkeypatch: pytest.MonkeyPatch, versions: tuple[int | None, ...], last: int | None, lacked: str | None
) -> None:
    monkeypatch.setattr(lost_table, "rebuild_command", lambda _: Command("rebuild", "orders"))
    monkeypatch.setattr(lost_table, "observe_table", lambda *_: TableState(True, version=0))
    monkeypatch.setattr("lakewright.slices.chain.last_commit_number", lambda *_: last)
    error = find_loss(chain(*versions))
    if lacked is None:
        assert error is None
    else:
        assert error is not None
        assert f"is older than the manifest: {lacked} been processed" in error.message
        option = " --over-foreign" if last is None else ""
        assert f"`lakewright rebuild orders{option} --yes` makes it again" in (error.remedy or "")


def test_a_slice_that_a_run_commits_and_records_between_two_looks_is_not_lacked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looks = iter((2, 3))
    monkeypatch.setattr(lost_table, "rebuild_command", lambda _: Command("rebuild", "orders"))
    monkeypatch.setattr("lakewright.slices.chain.last_commit_number", lambda *_: next(looks))
    monkeypatch.setattr(lost_table, "observe_table", lambda *_: TableState(True, version=0))
    found: Any = find_loss(chain(0, 1, 2))
    assert found is None
    assert list(looks) == []
