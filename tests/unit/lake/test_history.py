"""A table's log, read once, answers for each version what a walk through the log answers for one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import pytest
from tests.unit.lake.walk import is_effective

from lakewright.lake.commit import Commit, has_changed_rows
from lakewright.lake.history import TableHistory

START = datetime(2022, 1, 1, 12, tzinfo=UTC)
OWN = {"by": "lakewright"}
PARTITIONS: list[dict[str, str]] = [{}, {"day": "1"}, {"day": "2"}, {"day": "1", "shop": "a"}]


def random_log(chance: Random) -> tuple[Commit, ...]:
    start = chance.choice([0, 0, 3])
    log: list[Commit] = []
    for version in range(start, start + chance.randint(1, 8)):
        operation, parameters, content = random_commit(chance, version)
        log.append(Commit(version, START + timedelta(minutes=version), operation, parameters, content))
    return tuple(log)


def random_commit(chance: Random, version: int) -> tuple[str, dict[str, Any], dict[str, Any]]:
    kind = chance.choice(["append", "all", "part", "foreign", "optimize", "restore", "restore", "lost"])
    if kind == "restore":
        return "RESTORE", {"version": chance.randint(0, max(version - 1, 0))}, {}
    if kind == "lost":
        return "RESTORE", {}, {}
    if kind == "optimize":
        return "OPTIMIZE", {}, dict(OWN)
    if kind == "all":
        return "WRITE", {"mode": "Overwrite"}, dict(OWN)
    if kind == "part":
        parameters = {"mode": "Overwrite", "predicate": "day = 1"}
        return "WRITE", parameters, {**OWN, "emptied": chance.choice(PARTITIONS[1:])}
    return "WRITE", {"mode": "Append"}, {} if kind == "foreign" else dict(OWN)


@pytest.mark.parametrize("batch", range(4))
def test_what_is_held_is_what_a_walk_through_the_log_finds(batch: int) -> None:
    for seed in range(batch, 2000, 4):
        log = random_log(Random(seed))
        history = TableHistory("t", log[-1].version, log)
        for version in range(log[-1].version + 1):
            for partition in PARTITIONS:
                expected = is_effective(version, [each for each in log if each.version >= version], partition)
                assert history.holds(version, partition) == expected, (seed, version, partition)


@pytest.mark.parametrize("batch", range(4))
def test_rows_of_a_partition_have_changed_if_a_later_commit_may_have_written_them(batch: int) -> None:
    for seed in range(batch, 2000, 4):
        log = random_log(Random(seed))
        history = TableHistory("t", log[-1].version, log)
        for version in range(-1, log[-1].version + 1):
            for partition in PARTITIONS:
                later = [each for each in log if each.version > version and has_changed_rows(each)]
                expected = any(_overlap(each.content.get("emptied", {}), partition) for each in later)
                assert history.has_changed(version, partition) == expected, (seed, version, partition)


def _overlap(one: dict[str, str], other: dict[str, str]) -> bool:
    return all(other.get(name, value) == value for name, value in one.items())


def test_an_older_copy_of_a_table_has_changed() -> None:
    log = (Commit(0, START, "WRITE", {"mode": "Append"}, dict(OWN)),)
    assert TableHistory("t", 0, log).has_changed(5, {})


def test_what_another_writer_did_counts_unless_a_build_is_known_to_have_done_it() -> None:
    log = (
        Commit(0, START, "WRITE", {"mode": "Append"}, dict(OWN)),
        Commit(1, START, "WRITE", {"mode": "Append"}, {}),
        Commit(2, START, "DELETE", {"predicate": '["(day = 1)"]'}, {}),
    )
    history = TableHistory("t", 2, log)
    assert (history.foreign_since(0), history.foreign_since(2)) == (2, None)
    assert history.foreign_since(0, frozenset({2})) == 1
    assert history.foreign_since(0, frozenset({1, 2})) is None


def test_an_append_is_found_by_its_identity_as_long_as_its_rows_are_there() -> None:
    added = Commit(1, START, "WRITE", {"mode": "Append"}, {"app": "a", "number": 1})
    first = Commit(0, START, "WRITE", {"mode": "Append"}, dict(OWN))
    cleared = Commit(2, START, "DELETE", {"predicate": "[]"}, dict(OWN))
    assert TableHistory("t", 1, (first, added)).version_of_append("a") == 1
    assert TableHistory("t", 2, (first, added, cleared)).version_of_append("a") is None
