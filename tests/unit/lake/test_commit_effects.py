"""What later commits leave of an earlier one, as the log of the table tells."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

from lakewright.lake.commit import Commit, restored_version
from lakewright.lake.history import TableHistory, find_effective
from lakewright.lake.lake import Lake
from lakewright.spark.conf import SessionSettings
from lakewright.spec.models.lake import LakeSettings
from lakewright.spec.models.places import Address

pa: Any = import_module("pyarrow")

START = datetime(2022, 1, 1, 12, tzinfo=UTC)
MARK = 2
"""The version of the commit that is looked for; each version is a minute later than the last one."""


def is_effective(version: int, found: tuple[Commit, ...], partition: Mapping[str, str] | None = None) -> bool:
    values = {name.lower(): value for name, value in (partition or {}).items()}
    return TableHistory("t", found[-1].version, found).holds(version, values)


def log(*later: tuple[str, Mapping[str, Any]]) -> tuple[Commit, ...]:
    operations = [("WRITE", {"mode": "Append"}), *later]
    return tuple(
        Commit(MARK + number, START + timedelta(minutes=MARK + number), operation, parameters, {})
        for number, (operation, parameters) in enumerate(operations)
    )


@pytest.mark.parametrize(
    "later",
    [
        [("RESTORE", {"version": 1})],
        [("RESTORE", {"version": '"0"', "timestamp": None})],
        [("RESTORE", {"version": None, "timestamp": "2022-01-01 12:01:59.999"})],
        [("WRITE", {"mode": "Append"}), ("RESTORE", {"version": 1}), ("WRITE", {"mode": "Append"})],
        [("WRITE", {"mode": "Overwrite"})],
        [("DELETE", {"predicate": json.dumps(["true"])})],
        [("DELETE", {"predicate": "[]"}), ("WRITE", {"mode": "Append"})],
        [("CREATE OR REPLACE TABLE AS SELECT", {})],
        [("REPLACE TABLE", {})],
        [("TRUNCATE", {})],
    ],
)
def test_a_restore_or_an_overwrite_removes_the_rows_of_a_commit(later: list[tuple[str, Any]]) -> None:
    assert not is_effective(MARK, log(*later))


@pytest.mark.parametrize(
    "later",
    [
        [],
        [("WRITE", {"mode": "Append"}), ("OPTIMIZE", {}), ("MERGE", {})],
        [("RESTORE", {"version": MARK})],
        [("WRITE", {"mode": "Overwrite"}), ("RESTORE", {"version": MARK})],
        [
            ("WRITE", {"mode": "Overwrite"}),
            ("RESTORE", {"version": None, "timestamp": "2022-01-01 12:02:00"}),
        ],
        [("WRITE", {"mode": "Overwrite"}), ("RESTORE", {"timestamp": "2022-01-01T13:02:30+01:00"})],
        [("RESTORE", {"version": 1}), ("RESTORE", {"version": MARK})],
        [("WRITE", {"mode": "Overwrite", "predicate": "(p = 1)"})],
        [("WRITE", {"mode": "Overwrite", "isDynamicPartitionOverwrite": True})],
        [("DELETE", {"predicate": '["(day = 1)"]'})],
        [("RESTORE", {})],
    ],
)
def test_what_removes_some_rows_or_none_leaves_a_commit(later: list[tuple[str, Any]]) -> None:
    assert is_effective(MARK, log(*later))


@pytest.mark.parametrize(("partition", "is_there"), [({"day": "1"}, False), ({"DAY": "2"}, True), ({}, True)])
def test_a_commit_that_empties_a_partition_names_it_in_any_case(
    partition: Mapping[str, str], *, is_there: bool
) -> None:
    first, second = log(("DELETE", {"predicate": '["(day = 1)"]'}))
    emptying = replace(second, content={"by": "lakewright", "emptied": {"Day": "1"}})
    assert is_effective(MARK, (first, emptying), partition) is is_there


def test_a_commit_that_the_log_has_no_more_is_gone_only_after_an_overwrite() -> None:
    assert is_effective(-1, log(("RESTORE", {"version": 1})))
    assert not is_effective(-1, log(("WRITE", {"mode": "Overwrite"})))


def test_a_restore_to_the_time_of_a_commit_goes_back_to_that_commit() -> None:
    """The times were compared as texts, of which one had an offset."""
    history = log(("WRITE", {}), ("RESTORE", {"timestamp": "2022-01-01 12:03:00"}))
    assert restored_version(history[-1], history) == MARK + 1


def append(folder: Path, value: int, number: int | None = None) -> None:
    token = {"app": "a", "number": number, "value": value}
    given = CommitProperties(
        custom_metadata={"userMetadata": json.dumps(token)},
        app_transactions=[] if number is None else [Transaction("a", number)],
    )
    write_deltalake(folder, pa.table({"n": [value]}), mode="append", commit_properties=given)


def test_the_last_commit_of_an_application_is_found_until_the_table_is_restored(tmp_path: Path) -> None:
    folder = tmp_path / "t"
    lake, address = Lake(LakeSettings(), SessionSettings(tmp_path)), Address(location=str(folder))
    append(folder, 0)
    assert find_effective(lake, address, "a").number == 0
    append(folder, 1, 1)
    found = find_effective(lake, address, "a")
    assert found.number == 1
    assert found.commit is not None
    assert (found.commit.version, found.commit.content["value"]) == (1, 1)
    for value in range(25):
        append(folder, value)
    assert find_effective(lake, address, "a") == found

    DeltaTable(folder).restore(0)
    append(folder, 7)
    reverted = find_effective(lake, address, "a")
    assert (reverted.number, reverted.commit) == (1, None)
    append(folder, 1, 2)
    again = find_effective(lake, address, "a")
    assert again.number == 2
    assert again.commit is not None
