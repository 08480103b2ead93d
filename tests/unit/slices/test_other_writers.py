"""Commits of other programs since Lakewright's last one, as the log of a table tells them."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from deltalake import DeltaTable, write_deltalake
from tests.projects import make_workspace
from tests.silver import sign_last_commit
from tests.unit.slices.test_recover_from_log import pa

from lakewright.errors.phrase import Command
from lakewright.lake import commit
from lakewright.lake.commit import Commit
from lakewright.lake.delta_log import read_history
from lakewright.slices import lost_table
from lakewright.slices.lost_table import commits_of_others, others_fault
from lakewright.spec.models.places import Address


def test_commits_that_changed_rows_since_lakewrights_last_one_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = make_workspace(tmp_path, "").lake
    place = tmp_path / "orders"
    read: list[int | None] = []

    def reading(log: Any, table: DeltaTable, limit: int | None) -> Any:
        read.append(limit)
        return read_history(log, table, limit)

    monkeypatch.setattr(commit, "read_history", reading)

    def found() -> list[tuple[int, str]]:
        commits = commits_of_others(lake, Address(location=str(place)))
        return [(each.version, each.operation) for each in commits]

    assert found() == []
    rows = pa.table({"id": [1, 2, 3]})
    write_deltalake(place, rows)
    assert found() == []  # a table of another program alone
    sign_last_commit(place)
    read.clear()
    assert found() == []
    assert read == [1]

    DeltaTable(place).delete("id = 2")
    DeltaTable(place).update({"id": "7"}, predicate="id = 3")
    DeltaTable(place).optimize.compact()
    assert found() == [(1, "DELETE"), (2, "UPDATE")]

    write_deltalake(place, rows, mode="append")
    sign_last_commit(place)
    assert found() == []


def test_a_truncate_that_the_manifest_lost_is_not_called_another_programs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """After an older manifest was put back, Lakewright's own TRUNCATE was."""
    monkeypatch.setattr(lost_table, "rebuild_command", lambda _: Command("rebuild", "orders"))
    orders: Any = SimpleNamespace(called="orders")
    own = Commit(7, None, "DELETE", {}, {"by": "lakewright", "emptied": {}})
    other = Commit(8, None, "UPDATE", {}, {})
    assert others_fault(orders, [own]).message == (
        "rows of orders were removed by a TRUNCATE, which the manifest does not know: version 7 (DELETE)"
    )
    assert "by another program since" in others_fault(orders, [own, other]).message
