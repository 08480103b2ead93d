"""Commits of other writers."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from lakewright.lake.commit import Commit
from lakewright.manifest.record import Application
from lakewright.slices.chain import foreign_commits

APP = Application.named("lakewright/shop/orders", "orders")
START = datetime(2024, 1, 1, tzinfo=UTC)


def commit(
    version: int,
    operation: str = "MERGE",
    number: int | None = None,
    parameters: dict[str, Any] | None = None,
) -> Commit:
    content = {} if number is None else {"app": str(APP), "number": number, "item": f"s{number}"}
    return Commit(version, START + timedelta(hours=version), operation, parameters or {}, content)


def test_strangers_are_those_who_changed_rows_after_the_first_own_commit() -> None:
    log = [commit(0, "WRITE"), commit(1, number=1), commit(2, "OPTIMIZE"), commit(3, "UPDATE")]
    assert [each.version for each in foreign_commits(log)] == [3]
    assert foreign_commits(log[:1]) == ()


def test_strangers_whose_rows_a_rebuild_has_left_out_are_not_told() -> None:
    whole = {"app": str(APP), "number": 2, "rewind": {"base": None}}
    log = [commit(0, number=1), commit(1, "UPDATE"), Commit(2, START, "WRITE", {}, whole)]
    assert foreign_commits(log) == ()
    assert [each.version for each in foreign_commits([*log, commit(3, "DELETE")])] == [3]
    part = Commit(2, START, "WRITE", {}, {**whole, "rewind": {"base": 1}})
    assert [each.version for each in foreign_commits([*log[:2], part])] == [1]
