"""A table whose log has a damaged commit is told by its file, with what to do."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from deltalake import write_deltalake

from lakewright.errors import TargetError
from lakewright.lake.damaged_log import damage_in_text, with_remedy
from lakewright.lake.delta_log import LocalLog, read_log
from lakewright.lake.query_failures import EVERYWHERE, translated

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
    assert with_remedy(raised.value.message) == f"{raised.value.message}. {raised.value.remedy}".rstrip(".")


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
    found = damage_in_text(text)
    assert found is not None
    assert found.message == told
    error = translated(text, "while a slice was applied", EVERYWHERE)
    assert error is not None
    assert error.message == told
    assert damage_in_text("reading file file:///lake/sales/part-0.parquet") is None
    assert with_remedy("is empty") == "is empty"
