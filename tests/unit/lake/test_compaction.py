"""When a table's files are worth bringing together, told by its log alone."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from deltalake import write_deltalake

from lakewright.errors import SpecError
from lakewright.lake.compaction import TableShape, observe_shape
from lakewright.lake.lake import Lake
from lakewright.spark.conf import SessionSettings
from lakewright.spec.models.entity import Entity
from lakewright.spec.models.entity_settings import Maintenance
from lakewright.spec.models.lake import LakeSettings
from lakewright.spec.models.places import Address

pa: Any = import_module("pyarrow")


def lake(folder: Path) -> Lake:
    return Lake(LakeSettings(root_folder=str(folder)), SessionSettings(folder / "state"))


def shape(folder: Path) -> TableShape:
    found = observe_shape(lake(folder), Address(location=str(folder / "t")), Maintenance())
    assert found is not None
    return found


def grow(folder: Path, files: int, day: int = 1) -> None:
    for _ in range(files):
        rows = pa.table({"id": [1, 2], "day": [day, day]})
        write_deltalake(folder / "t", rows, mode="append", partition_by=["day"])


def test_where_no_table_is_there_is_no_shape(tmp_path: Path) -> None:
    assert observe_shape(lake(tmp_path), Address(location=str(tmp_path / "t")), Maintenance()) is None


def test_small_files_count_by_partition(tmp_path: Path) -> None:
    grow(tmp_path, 3, day=1)
    grow(tmp_path, 4, day=2)
    assert (shape(tmp_path).files, shape(tmp_path).small_files) == (7, 4)
    assert shape(tmp_path).reasons(Maintenance(small_files=5)) == ()
    assert shape(tmp_path).reasons(Maintenance(small_files=4)) == ("4 files below 64 MiB",)


def test_marked_rows_are_told_by_the_checksum_of_the_version(tmp_path: Path) -> None:
    grow(tmp_path, 5)
    assert shape(tmp_path).marked is None
    checksum = tmp_path / "t" / "_delta_log" / f"{4:020}.crc"
    checksum.write_text(json.dumps({"numDeletedRecordsOpt": 3}))
    assert shape(tmp_path).marked == pytest.approx(0.3)
    assert shape(tmp_path).reasons(Maintenance(marked_rows=0.3)) == ()
    assert shape(tmp_path).reasons(Maintenance(marked_rows=0.2)) == (
        "30% of the rows in its files are marked as replaced",
    )
    checksum.write_text("{")
    assert shape(tmp_path).marked is None


def test_an_entity_says_when_or_that_it_isnt_to_be_done() -> None:
    declared = {
        "id": "1",
        "name": "things",
        "connection": "crm",
        "processtype": "full",
        "settings": {"maintenance": {"enabled": "false", "small_files": "5", "file_mib": 128}},
    }
    wanted = Entity.model_validate(declared).settings.maintenance
    assert (wanted.enabled, wanted.small_files, wanted.file_bytes) == (False, 5, 128 << 20)


@pytest.mark.parametrize("wrong", [{"small_files": 1}, {"marked_rows": 1}, {"smal_files": 5}])
def test_settings_that_make_no_sense_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises((ValueError, SpecError)):
        Maintenance.model_validate(wrong)
