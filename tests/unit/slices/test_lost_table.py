"""A table that is gone although slices count as processed into it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from lakewright.errors import TargetError
from lakewright.lake.table_state import ABSENT, TableState
from lakewright.manifest.item import Item
from lakewright.slices import lost_table
from lakewright.slices.lost_table import check_table_not_lost

CONTEXT: Any = SimpleNamespace(
    lake=SimpleNamespace(settings=None), ledger=SimpleNamespace(store=None), application=None
)
ENTITY: Any = SimpleNamespace(
    name="orders", called="orders", places=lambda _: SimpleNamespace(silver="/lake/silver/orders")
)


@pytest.mark.parametrize(
    ("looks", "is_refused"), [([ABSENT, ABSENT], True), ([ABSENT, TableState(True, version=0)], False)]
)
def test_a_table_is_lost_only_if_it_is_still_missing_after_a_processed_slice_was_found(
    monkeypatch: pytest.MonkeyPatch, looks: list[TableState], is_refused: bool
) -> None:
    """Another run makes the table and records its first slice between the two questions."""
    answers = iter(looks)
    monkeypatch.setattr(lost_table, "observe_table", lambda *_: next(answers))
    monkeypatch.setattr(lost_table, "first_processed", lambda *_: Item("file:///bronze/orders/d1.csv"))
    monkeypatch.setattr(lost_table, "rebuild_command", lambda _: "lakewright rebuild orders")
    if is_refused:
        with pytest.raises(TargetError, match="no table exists there"):
            check_table_not_lost(CONTEXT, ENTITY)
    else:
        check_table_not_lost(CONTEXT, ENTITY)
    assert list(answers) == []
