"""What other programs have done to rows since Lakewright's last commit, by the log alone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.unit.lake.walk import is_effective

from lakewright.lake.commit import Commit, Since, changes_of_others

START = datetime(2026, 1, 1, tzinfo=UTC)


def commit(version: int, operation: str, /, **parameters: Any) -> Commit:
    return Commit(version, START + timedelta(hours=version), operation, parameters, {})


def look(*later: Commit) -> list[int]:
    log = [commit(version, "WRITE") for version in range(4)]
    return [each.version for each in changes_of_others(Since(log[-1], later), [*log, *later])]


@pytest.mark.parametrize(
    "later",
    [
        [],
        [commit(4, "OPTIMIZE"), commit(5, "VACUUM END"), commit(6, "SET TBLPROPERTIES")],
        [commit(4, "DELETE", predicate='["x"]'), commit(5, "RESTORE", version="3")],
        [commit(4, "WRITE", mode="Overwrite"), commit(5, "UPDATE"), commit(6, "RESTORE", version="3")],
        [commit(4, "DELETE"), commit(5, "RESTORE", timestamp=(START + timedelta(hours=3)).isoformat())],
    ],
)
def test_what_was_taken_back_or_moves_no_rows_is_no_change(later: list[Commit]) -> None:
    assert look(*later) == []


def test_changes_are_told_on_top_of_the_last_build() -> None:
    assert look(commit(4, "OPTIMIZE"), commit(5, "UPDATE"), commit(6, "MERGE")) == [5, 6]


def test_only_what_a_restore_kept_of_the_changes_is_told() -> None:
    found = look(
        commit(4, "UPDATE"), commit(5, "DELETE", predicate='["x"]'), commit(6, "RESTORE", version="4")
    )

    assert found == [4]


@pytest.mark.parametrize(
    ("later", "standing"),
    [
        ([commit(4, "RESTORE", version="1")], [4]),
        ([commit(4, "RESTORE", timestamp=(START + timedelta(hours=2)).isoformat())], [4]),
        ([commit(4, "UPDATE"), commit(5, "WRITE", mode="Overwrite")], [5]),
        ([commit(4, "UPDATE"), commit(5, "CREATE OR REPLACE TABLE")], [5]),
        ([commit(4, "DELETE"), commit(5, "WRITE")], [4, 5]),
    ],
)
def test_a_table_that_others_put_back_or_wrote_as_a_whole_lacks_later_builds(
    later: list[Commit], standing: list[int]
) -> None:
    assert look(*later) == standing


def test_a_restore_to_what_nobody_knows_is_a_change_of_rows() -> None:
    """A time of another zone led to the RESTORE itself, again and again."""
    late = (START + timedelta(hours=9)).isoformat()
    for given in ({"timestamp": late}, {"timestamp": "before"}, {}):
        assert look(commit(4, "UPDATE"), commit(5, "RESTORE", **given), commit(6, "MERGE")) == [5, 6]


def test_a_restore_of_the_deltalake_package_tells_its_time() -> None:
    at = START + timedelta(hours=1, minutes=30)
    assert look(commit(4, "UPDATE"), commit(5, "RESTORE", datetime=str(int(at.timestamp() * 1000)))) == [5]


def test_an_append_is_gone_once_its_partition_was_emptied_after_it() -> None:
    """Rows that another target has added since were taken for its own."""
    emptied = Commit(
        5, START, "DELETE", {"predicate": '["x"]'}, {"by": "lakewright", "emptied": {"day": "1"}}
    )
    log = [commit(4, "WRITE", mode="Append"), emptied, commit(6, "WRITE", mode="Append")]
    assert is_effective(4, log)
    assert is_effective(4, log, {"day": "2"})
    assert not is_effective(4, log, {"day": "1"})
    assert not is_effective(4, log, {"day": "1", "region": "north"})
    assert is_effective(4, [*log, commit(7, "RESTORE", version="4")], {"day": "1"})
