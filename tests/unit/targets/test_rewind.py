"""Slices beside an undo or a rebuild of their table: a job beside a rebuild."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.contexts import make_context
from tests.projects import make_workspace

from lakewright.errors import LeaseHeld
from lakewright.manifest.lease import Lease
from lakewright.manifest.store import Query
from lakewright.manifest.verdict import Verdict
from lakewright.slices.chain import counter_of
from lakewright.slices.context import ProcessingContext
from lakewright.slices.processing import process_pending
from lakewright.spec.models.entity import Entity
from lakewright.targets.context import Context
from lakewright.targets.entity.work import EntityWork
from lakewright.targets.target import Target

PROJECT = """
connections:
  shop: {settings: {bronze_path: "${entity}", silver_path: "${entity}"}}
entities:
  orders: {id: 1, connection: shop, processtype: merge, columns: [{name: id, fieldroles: [businesskey]}]}
targets:
  orders: {kind: entity, entity: orders}
"""


class Stage:
    """An entity with a slice that nobody has processed, and an announced rewind of its table."""

    def __init__(self, folder: Path) -> None:
        bronze = folder / "lake/bronze/orders"
        bronze.mkdir(parents=True)
        (bronze / "2022-01-01").write_text("not read by this test")
        self.context: Context = make_context(make_workspace(folder, PROJECT))
        self.entity: Entity = self.context.workspace.entity("orders")
        self.work = EntityWork(self.context, self.entity, "orders")
        self.warnings: list[str] = []

    @property
    def processing(self) -> ProcessingContext:
        from dataclasses import replace

        return replace(self.work.processing, warn=self.warnings.append)

    def announce(self) -> Lease:
        lease = self.context.leases.acquire("write orders")
        ledger, key = self.context.ledger, counter_of(self.work.silver)
        ledger.announce_rewind(key, "rebuild of orders", lease, "r1", self.work.processing.application)
        return lease

    def verdicts(self) -> set[Verdict]:
        found = self.context.ledger.store.select(Query())
        return {item.verdict(self.work.processing.application) for item in found}


def test_slices_wait_for_a_rewind_and_are_not_locked(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    stage.announce()
    observed = Target.named(stage.context.workspace, "orders").observe(stage.context)
    assert (observed.pending, observed.waiting) == ((), ("2022-01-01",))
    assert observed.hold is not None
    assert observed.hold.is_locked
    assert "the rebuild of orders by" in observed.hold.error.message
    with pytest.raises(LeaseHeld, match="the rebuild of orders by"):
        process_pending(stage.processing, stage.entity)
    assert stage.verdicts() <= {Verdict.READY}


def test_a_rewind_that_begins_after_the_check_gets_the_slice_given_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run has seen no rewind, and locks its slice just as one is announced."""
    stage = Stage(tmp_path)
    lease = stage.announce()
    monkeypatch.setattr("lakewright.slices.processing.settle_rewind", lambda *_: False)
    result = process_pending(stage.processing, stage.entity)
    assert isinstance(result.error, LeaseHeld)
    assert stage.verdicts() == {Verdict.READY}
    stage.context.leases.release(lease)


def test_a_rewind_that_died_before_its_commit_is_dropped_and_said(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    stage.context.leases.release(stage.announce())
    observed = Target.named(stage.context.workspace, "orders").observe(stage.context)
    assert observed.pending == ("2022-01-01",)
    assert [str(each).partition(":")[0] for each in observed.unrecorded] == [
        "the rebuild of orders did not end"
    ]
    from lakewright.slices.rewind.settlement import settle_rewind

    assert settle_rewind(stage.processing, stage.entity) is False
    assert stage.warnings == ["orders: the rebuild of orders ended before it changed the table"]
    assert stage.context.ledger.rewind_of(counter_of(stage.work.silver)) is None
