"""Slices of which manifest and table don't say the same."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from lakewright.errors.phrase import Command
from lakewright.lake.commit import Commit
from lakewright.manifest.item import Item, Mark, Verdict
from lakewright.manifest.record import Application
from lakewright.slices.chain import foreign_commits
from lakewright.slices.lost_table import mismatches

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


def item(number: int, verdict: Verdict = Verdict.PROCESSED) -> Item:
    mark = Mark("r", APP, None, START, 1)
    found = Item(
        f"file:///bronze/s{number}",
        sequence=1,
        revision=1,
        new=mark,
        processed=(mark,) if verdict is Verdict.PROCESSED else (),
        tokens={APP.key: number},
        applications=(APP,),
    )
    assert found.verdict(APP) is verdict
    return found


def kinds(
    items: list[Item], log: list[Commit], last: int | None, *, unchanged: tuple[str, ...] = ()
) -> list[tuple[str, str]]:
    found = mismatches(items, APP, log, last, changed_nothing=lambda item: item.item_id in unchanged)
    return [(each.kind, each.slice) for each in found]


def test_a_whole_log_has_none() -> None:
    assert kinds([item(1), item(2)], [commit(0, number=1), commit(1, number=2)], 2) == []


def test_a_slice_that_changed_nothing_has_no_commit_to_lose_a3() -> None:
    log = [commit(0, number=1)]
    assert kinds([item(1), item(2)], log, 1) == [("commit_lost", "s2")]
    assert kinds([item(1), item(2)], log, 1, unchanged=("file:///bronze/s2",)) == []


def test_a_commit_that_the_log_has_forgotten_is_no_loss() -> None:
    assert kinds([item(1), item(2)], [commit(1, number=2)], 2) == []


def test_what_a_restore_took_back_is_lost() -> None:
    log = [
        commit(0, number=1),
        commit(1, number=2),
        commit(2, "RESTORE", parameters={"version": 0}),
        commit(3, number=3),
    ]
    assert kinds([item(1), item(2), item(3)], log, 3) == [("commit_lost", "s2")]
    by_time = commit(2, "RESTORE", parameters={"timestamp": str(START + timedelta(minutes=1))})
    assert kinds([item(1), item(2)], [*log[:2], by_time], 2) == [("commit_lost", "s2")]


def test_what_a_restore_took_back_of_a_rebuild_is_made_again_by_one() -> None:
    """Each slice was to be requeued, also those whose rows are there."""
    content = {"app": str(APP), "number": 1, "items": [{"item": "/b/s1"}], "rewind": {"base": None}}
    log = [commit(0), Commit(1, START, "WRITE", {}, content), commit(2, "RESTORE", parameters={"version": 0})]
    (found,) = mismatches(
        [item(1)], APP, log, 1, changed_nothing=lambda _: False, rebuild=Command("rebuild", "orders")
    )
    assert (found.kind, found.remedy) == ("commit_lost", "lakewright rebuild orders")


def test_what_a_new_table_does_not_have_is_lost() -> None:
    assert kinds([item(1)], [commit(0, "CREATE TABLE")], None) == [("commit_lost", "s1")]


def test_what_only_the_table_knows_is_taken_over() -> None:
    assert kinds([item(1, Verdict.READY)], [commit(0, number=1)], 1) == [("commit_unrecorded", "s1")]
    assert kinds([item(1, Verdict.READY)], [commit(0, number=7)], 7) == []


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


def test_each_slice_of_a_fold_has_its_commit_and_no_other_slice_of_its_number_has() -> None:
    """s1 and s2 are in one commit; s3 was to be folded with them, and has their number."""
    content = {"app": str(APP), "number": 1, "items": [{"item": "/b/s1"}, {"item": "/b/s2"}]}
    log = [Commit(0, START, "WRITE", {}, content)]
    one, two = item(1), replace(item(2), tokens={APP.key: 1})
    assert kinds([one, two], log, 1) == []
    ready = [replace(item(number, Verdict.READY), tokens={APP.key: 1}) for number in (2, 3)]
    assert kinds(ready, log, 1) == [("commit_unrecorded", "s2")]
    restored = Commit(1, START, "RESTORE", {"version": -1}, {})
    assert kinds([one, two], [*log, restored], 1) == [("commit_lost", "s1"), ("commit_lost", "s2")]
