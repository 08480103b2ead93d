"""The settings of a session for small and large slices: they change how a query runs, not what it gives."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from lakewright.lake.table_state import TableState
from lakewright.strategies.slice_load import is_small_load, is_tiny_load, tune


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
    assert (is_tiny_load(size, state), is_small_load(size, state)) == (is_tiny, is_small)


def test_a_large_slice_after_a_tiny_one_has_the_settings_with_which_the_session_was_started() -> None:
    started = {"adaptive.enabled": "true", "shuffle.partitions": "4", "codegen.wholeStage": "true"}
    base, load = session(**started), session(**started)
    tune(load, base, is_tiny=True, is_small=True, is_wide=True)
    assert load.conf["spark.sql.shuffle.partitions"] == "1"
    assert load.conf["spark.sql.adaptive.enabled"] == "false"
    assert load.conf["spark.sql.codegen.wholeStage"] == "false"
    assert load.conf["spark.sql.codegen.factoryMode"] == "NO_CODEGEN"
    tune(load, base, is_tiny=False, is_small=True, is_wide=False)
    assert load.conf["spark.sql.shuffle.partitions"] == "1"
    assert load.conf["spark.sql.codegen.wholeStage"] == "true"
    tune(load, base, is_tiny=False, is_small=False, is_wide=False)
    assert load.conf == base.conf
