"""The slices that a table holds, by its log: rewinds and commits of several slices."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from lakewright.lake.commit import Commit
from lakewright.slices.chain import effective_commits, foreign_since, since_empty, slices_in

APP = "lakewright/shop/orders:orders"
START = datetime(2024, 1, 1, tzinfo=UTC)


def commit(version: int, operation: str = "MERGE", *, app: str | None = APP, **content: Any) -> Commit:
    told = {} if app is None else {"app": app, **content}
    return Commit(version, START + timedelta(hours=version), operation, {}, told)


def of(version: int, number: int) -> Commit:
    return commit(version, item=f"s{number}", number=number)


def undone(version: int, base: int | None, operation: str = "RESTORE") -> Commit:
    parameters = {} if base is None else {"version": base}
    told = {"app": f"{APP}/undo", "number": version, "rewind": {"base": base}}
    return Commit(version, START + timedelta(hours=version), operation, parameters, told)


def held(*log: Commit) -> list[str]:
    chain = list(effective_commits(log, APP))
    return [each.item_id for one in reversed(chain) for each in slices_in(one, APP)]


def test_an_undone_slice_is_not_in_the_table() -> None:
    assert held(of(0, 1), of(1, 2), undone(2, 0)) == ["s1"]
    assert held(of(0, 1), of(1, 2), undone(2, 0), of(3, 3)) == ["s1", "s3"]


def test_an_undo_of_the_first_slice_empties_the_table() -> None:
    assert held(of(0, 1), undone(1, None, "DELETE"), of(2, 2)) == ["s2"]


def test_a_swap_holds_its_slices_after_those_of_its_base() -> None:
    items = [{"item": "s3"}, {"item": "s4"}]
    swap = commit(4, "CREATE OR REPLACE TABLE AS SELECT", number=5, rewind={"base": 0}, items=items)
    log = (of(0, 1), of(1, 2), of(2, 3), of(3, 4), swap)
    assert held(*log) == ["s1", "s3", "s4"]
    assert [each.number for each in slices_in(swap, APP)] == [5, 5]
    rebuilt = commit(5, "CREATE OR REPLACE TABLE AS SELECT", number=6, rewind={"base": None}, items=items)
    assert held(*log, rebuilt, of(6, 7)) == ["s3", "s4", "s7"]


def test_a_slice_of_another_table_of_the_same_log_is_not_held() -> None:
    assert held(of(0, 1), commit(1, app="lakewright/shop/other:other", item="x", number=1)) == ["s1"]


def test_repairs_and_commits_of_others_are_foreign_to_slices() -> None:
    log = (
        of(0, 1),
        commit(1, "UPDATE", app=None),
        commit(2, "WRITE", app=f"{APP}/repair", number=3),
        commit(3, "OPTIMIZE", app=None),
        undone(4, 0),
    )
    assert [each.version for each in foreign_since(log, APP)] == [1, 2]


def test_what_was_lost_before_a_rebuild_or_a_truncate_is_not_lost_again() -> None:
    by_hand, rebuilt = commit(1, "UPDATE", app=None), commit(2, "REPLACE", number=2, rewind={"base": None})
    log = (of(0, 1), by_hand, rebuilt, commit(3, "UPDATE", app=None))
    assert [each.version for each in foreign_since(since_empty(log), APP)] == [3]
    emptied = Commit(1, START, "DELETE", {"predicate": "[]"}, {})
    assert since_empty((of(0, 1), emptied, of(2, 2))) == (of(2, 2),)


def test_past_versions_are_not_foreign_and_stay_under_the_first_slice() -> None:
    """`history_from`: a rebuild loads them again, and an undo of the first slice goes back to them."""
    past = commit(0, "CREATE TABLE AS SELECT", app=f"{APP}/past", record="r/past")
    log = (past, of(1, 1), of(2, 2))
    assert foreign_since(log, APP) == ()
    assert [each.version for each in effective_commits(log, APP)] == [2, 1, 0]
    assert held(*log) == ["s1", "s2"]
