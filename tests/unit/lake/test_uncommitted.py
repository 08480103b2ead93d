"""What a table's first write leaves when it fails: no table, and nothing in the way of the next one."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakewright.errors import MigrationError
from lakewright.lake.lake import Lake
from lakewright.lake.observation import observe_table
from lakewright.lake.table import remove_uncommitted
from lakewright.spark.conf import SessionSettings
from lakewright.spec.models.lake import LakeSettings
from lakewright.spec.models.places import Address


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(LakeSettings(), SessionSettings(tmp_path / "state"))


def test_a_log_without_a_commit_is_no_table_and_can_be_removed(tmp_path: Path, lake: Lake) -> None:
    table = tmp_path / "silver"
    (table / "_delta_log" / "_staged_commits").mkdir(parents=True)
    (table / "part-0.parquet").write_bytes(b"torn")
    address = Address(location=str(table))

    assert not observe_table(lake, address).exists
    remove_uncommitted(address)

    assert not table.exists()


def test_what_is_no_table_is_left_alone_and_said(tmp_path: Path, lake: Lake) -> None:
    table = tmp_path / "silver"
    table.mkdir()
    (table / "notes.txt").write_text("mine")
    address = Address(location=str(table))

    remove_uncommitted(address)

    assert (table / "notes.txt").exists()
    with pytest.raises(MigrationError, match="is not a Delta table"):
        observe_table(lake, address)
