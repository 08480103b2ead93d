"""The session that starts for much work knows it: the bytes of what is pending; no JVM."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest
from tests.contexts import make_context
from tests.projects import make_workspace
from tests.sessions import Started

from lakewright.errors import SparkUnavailable
from lakewright.slices.application import application_of
from lakewright.slices.context import ProcessingContext
from lakewright.slices.pending import find_pending
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
    seen: list[SessionSettings] = []

    def begin(settings: SessionSettings) -> SparkSession:
        seen.append(settings)
        raise SparkUnavailable("not here")

    workspace = make_workspace(tmp_path, PROJECT)
    workspace.lake.sessions = Started(begin)
    context = make_context(workspace, store=MemoryStore())
    for name, sizes in {"orders": (3, 4), "prices": (5,)}.items():
        entity = workspace.entity(name)
        for number, size in enumerate(sizes):
            folder = tmp_path / "lake/bronze" / name
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"d{number}").write_text("x" * size)
        place = ProcessingContext(
            lake=workspace.lake,
            ledger=context.ledger,
            holder=context.leases.holder,
            application=application_of("tests", entity),
            clock=context.clock,
        )
        find_pending(place, entity)
        find_pending(place, entity, is_recorded=False)  # a second look counts nothing twice
    with pytest.raises(SparkUnavailable):
        cast("object", workspace.lake.spark)
    assert [each.pending_bytes for each in seen] == [12]
