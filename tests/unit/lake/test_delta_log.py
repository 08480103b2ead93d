"""Tables whose checkpoint is torn."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable, write_deltalake

from lakewright.errors import TargetError
from lakewright.lake.delta_log import LocalLog, read_log

pa: Any = import_module("pyarrow")


def test_a_torn_checkpoint_is_named_and_the_log_does_without_it(tmp_path: Path) -> None:
    for number in range(3):
        write_deltalake(tmp_path, pa.table({"id": [number]}), mode="append")
    DeltaTable(tmp_path).create_checkpoint()
    (checkpoint,) = (tmp_path / "_delta_log").glob("*.checkpoint.parquet")
    checkpoint.write_bytes(checkpoint.read_bytes()[:100])

    with pytest.raises(TargetError, match=checkpoint.name) as raised:
        read_log(LocalLog(tmp_path))

    assert raised.value.details["torn"] == [checkpoint.name]
    checkpoint.unlink()
    (tmp_path / "_delta_log/_last_checkpoint").unlink()
    _, is_told, table = read_log(LocalLog(tmp_path))
    assert is_told
    assert table is not None
    assert table.version() == 2
    assert read_log(LocalLog(tmp_path / "nothing"))[1:] == (True, None)
    assert read_log(None)[1:] == (False, None)
