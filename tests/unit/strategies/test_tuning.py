"""The settings of a session for small and large slices: they change how a query runs, not what it gives."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from lakewright.lake.delta_log import TableState
from lakewright.strategies.tuning import PARTITIONS, Tuning


class Conf(dict[str, str]):
    """The settings of a session; one that is unset has Spark's default, which is none of a session's own."""

    def set(self, key: str, value: str) -> None:
        """Set a key."""
        self[key] = value

    def unset(self, key: str) -> None:
        """Remove a key."""
        self.pop(key, None)


def session(**conf: str) -> Any:
    return SimpleNamespace(conf=Conf({f"spark.sql.{key}": value for key, value in conf.items()}))


def lake_with(started: dict[str, str], **users: str) -> Any:
    """Return a lake whose session was started with these settings, of which users chose some."""
    return SimpleNamespace(spark=session(**started), session=SimpleNamespace(conf=session(**users).conf))


@pytest.mark.parametrize(
    ("size", "rows", "is_tiny", "is_small"),
    [
        (1_000, 0, True, True),
        (256 << 10, 20_000, True, True),
        (1 << 20, 20_000, False, True),
        (1_000, 200_000, False, True),
        (1_000, 200_001, False, False),
        (5 << 20, 10, False, False),
        (1_000, None, False, False),
    ],
)
def test_a_load_is_small_by_its_slice_and_its_table(
    size: int, rows: int | None, is_tiny: bool, is_small: bool
) -> None:
    state = TableState(exists=True, rows=rows)
    tuning = Tuning.of(state, size=size)
    assert (tuning.is_tiny, tuning.is_small) == (is_tiny, is_small)


def test_a_large_slice_after_a_tiny_one_has_the_settings_with_which_the_session_was_started() -> None:
    started = {"adaptive.enabled": "true", "shuffle.partitions": "4", "codegen.wholeStage": "true"}
    load = session(**started)
    lake = lake_with(started)
    Tuning(is_tiny=True, is_small=True, is_wide=True).apply(load, lake)
    assert load.conf["spark.sql.shuffle.partitions"] == "1"
    assert load.conf["spark.sql.adaptive.enabled"] == "false"
    assert load.conf["spark.sql.codegen.wholeStage"] == "false"
    assert load.conf["spark.sql.codegen.factoryMode"] == "NO_CODEGEN"
    Tuning(is_tiny=False, is_small=True, is_wide=False).apply(load, lake)
    assert load.conf["spark.sql.shuffle.partitions"] == "1"
    assert load.conf["spark.sql.codegen.wholeStage"] == "true"
    Tuning(is_tiny=False, is_small=False, is_wide=False).apply(load, lake)
    assert load.conf == lake.spark.conf


LARGE = Tuning.of(TableState(exists=True, rows=20_000_000, size=1_600 << 20), size=2_400 << 20)


def test_a_large_load_has_so_many_partitions_that_a_task_keeps_one_in_memory() -> None:
    load = session()
    LARGE.apply(load, lake_with({"shuffle.partitions": "4"}))
    assert load.conf[PARTITIONS] == "150"
    Tuning.of(TableState(exists=True, rows=20_000_000, size=2 << 20), size=1 << 20).apply(
        load, lake_with({"shuffle.partitions": "4"})
    )
    assert load.conf[PARTITIONS] == "4"


@pytest.mark.parametrize(
    ("started", "users"),
    [
        pytest.param({"shuffle.partitions": "8"}, {"shuffle.partitions": "8"}, id="users chose a number"),
        pytest.param({}, {}, id="Spark has more by itself"),
        pytest.param({"shuffle.partitions": "300"}, {}, id="a cluster has more"),
    ],
)
def test_a_large_load_keeps_the_partitions_that_are_enough_or_that_users_chose(
    started: dict[str, str], users: dict[str, str]
) -> None:
    load = session(**started)
    LARGE.apply(load, lake_with(started, **users))
    assert load.conf == session(**started).conf
