"""The session that starts for much work knows it: the bytes of what is pending; no JVM."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest
from tests.contexts import make_context
from tests.projects import make_workspace
from tests.sessions import Started

from lakewright.errors import SparkUnavailable
from lakewright.slices.application import application_of
from lakewright.slices.context import ProcessingContext
from lakewright.slices.pending_slices import find_pending
from lakewright.spark.conf import SessionSettings
from lakewright.stores.memory import MemoryStore

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PROJECT = """
connections:
  shop: {settings: {bronze_path: "${entity}", silver_path: "${entity}"}}
entities:
  orders: {id: 1, connection: shop, processtype: merge, columns: [{name: id, fieldroles: [businesskey]}]}
  prices: {id: 2, connection: shop, processtype: merge, columns: [{name: id, fieldroles: [businesskey]}]}
"""


def test_a_session_starts_with_the_bytes_of_all_slices_that_are_ready(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    lake.deliver("orders", 3, 4)
    lake.deliver("prices", 5)
    assert lake.pending_bytes("orders", "prices") == 12


def test_a_slice_that_is_compared_with_its_table_counts_an_eighth(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    lake.deliver("orders", 3)
    lake.process("orders")
    lake.deliver("orders", 8 * 7)
    lake.deliver("prices", 5)
    assert lake.pending_bytes("orders", "prices") == 7 + 5


class Lake:
    """A lake whose session never starts, but says with what it would."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.workspace = make_workspace(folder, PROJECT)
        self.workspace.lake.sessions = Started(self._begin)
        self.context = make_context(self.workspace, store=MemoryStore())
        self.seen: list[int] = []
        self._number = 0

    def _begin(self, settings: SessionSettings) -> SparkSession:
        self.seen.append(settings.pending_bytes)
        raise SparkUnavailable("not here")

    def place(self, entity: str) -> ProcessingContext:
        return ProcessingContext(
            lake=self.workspace.lake,
            ledger=self.context.ledger,
            holder=self.context.leases.holder,
            application=application_of("tests", self.workspace.entity(entity)),
            clock=self.context.clock,
        )

    def deliver(self, entity: str, *sizes: int) -> None:
        folder = self.folder / "lake/bronze" / entity
        folder.mkdir(parents=True, exist_ok=True)
        for size in sizes:
            self._number += 1
            (folder / f"d{self._number}").write_text("x" * size)

    def process(self, entity: str) -> None:
        place = self.place(entity)
        for item in find_pending(place, self.workspace.entity(entity)).ready:
            claim = place.ledger.acquire(
                item.item_id,
                place.application,
                place.holder,
                duration=timedelta(minutes=1),
                token_counter="t",
            )
            place.ledger.processed(claim, {})

    def pending_bytes(self, *entities: str) -> int:
        for name in entities:
            entity = self.workspace.entity(name)
            find_pending(self.place(name), entity)
            find_pending(self.place(name), entity, is_recorded=False)  # a second look counts nothing twice
        with pytest.raises(SparkUnavailable):
            cast("object", self.workspace.lake.spark)
        (found,) = self.seen
        return found
