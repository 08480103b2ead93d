"""A table whose log has a damaged commit is told by its file, with what to do."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from deltalake import write_deltalake

from lakewright.errors import MigrationError, TargetError
from lakewright.lake.delta_log import LocalLog, read_log
from lakewright.lake.lake import Lake
from lakewright.lake.observation import last_commit_number, observe_table, observe_without_spark
from lakewright.lake.spark_errors import EVERYWHERE, translated
from lakewright.lake.storage_errors import failed_observation
from lakewright.spark.conf import SessionSettings
from lakewright.spec.models.lake import LakeSettings
from lakewright.spec.models.places import Address

pa: Any = import_module("pyarrow")

COMMITS = [f"{number:020d}.json" for number in range(3)]


def _cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:100])


def _appended(file: Path) -> None:
    file.write_bytes(file.read_bytes() + b"{broken")


@pytest.mark.parametrize(
    ("number", "damage", "told"),
    [
        (2, _cut, f"its log file {COMMITS[2]} is damaged"),
        (2, _appended, f"its log file {COMMITS[2]} is damaged"),
        (1, Path.unlink, f"its log file {COMMITS[1]} is missing"),
    ],
)
def test_the_file_is_named_and_what_makes_the_table_again(
    tmp_path: Path, number: int, damage: Callable[[Path], None], told: str
) -> None:
    """Finding 9: each command showed Java's stack, and nothing said what to do."""
    for each in range(3):
        write_deltalake(tmp_path, pa.table({"id": [each]}), mode="append")
    damage(tmp_path / "_delta_log" / COMMITS[number])
    with pytest.raises(TargetError) as raised:
        read_log(LocalLog(tmp_path))
    assert raised.value.message == f"the table {tmp_path} can't be read: {told}"
    assert f"`mv {tmp_path} {tmp_path}.damaged`" in str(raised.value.remedy)
    assert "`lakewright rebuild ENTITY --yes`" in str(raised.value.remedy)
    warning = failed_observation("x", raised.value).warning
    assert warning is not None
    assert (warning.message, warning.remedy) == (
        f"the run will fail: {raised.value.message}",
        raised.value.remedy,
    )


@pytest.mark.parametrize(
    "text",
    [
        "[FAILED_READ_FILE.NO_HINT] Encountered error while reading file "
        f"file:///lake/gold/sales/_delta_log/{COMMITS[2]}.  SQLSTATE: KD001",
        "org.apache.hadoop.fs.ChecksumException: Checksum error: "
        f"file:/lake/gold/sales/_delta_log/{COMMITS[2]} at 0 exp: 204157572 got: -729336400",
    ],
)
def test_what_spark_says_of_it_is_told_in_the_same_way(text: str) -> None:
    told = f"the table /lake/gold/sales can't be read: its log file {COMMITS[2]} is damaged"
    error = translated(RuntimeError(text), "while a slice was applied", EVERYWHERE)
    assert error is not None
    assert error.message == told
    of_rows = RuntimeError("[FAILED_READ_FILE.NO_HINT] Encountered error while reading file file:///a/part-0")
    assert translated(of_rows, "while a slice was applied", EVERYWHERE) is None
    assert failed_observation("x", TargetError("is empty")).warning is None


def test_files_of_rows_without_a_log_are_told_as_a_table_that_lost_it(tmp_path: Path) -> None:
    """It was said that no table exists there, with a rebuild that then refused what is there."""
    lake = Lake(LakeSettings(), SessionSettings(tmp_path / "state"))
    folder = tmp_path / "my silver"
    write_deltalake(folder, pa.table({"id": [1]}))
    (folder / "_delta_log").rename(tmp_path / "elsewhere")
    address = Address(location=str(folder))
    looks: list[Callable[[], object]] = [
        lambda: observe_table(lake, address),
        lambda: observe_without_spark(lake, address),
        lambda: last_commit_number(lake, address, "orders"),
    ]
    for look in looks:
        with pytest.raises(MigrationError, match="has files of rows, but no Delta log") as raised:
            look()
        assert f"`mv '{folder}' '{folder}.damaged'`" in str(raised.value.remedy)
        assert failed_observation("x", raised.value).warning is not None
