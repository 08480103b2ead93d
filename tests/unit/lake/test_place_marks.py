"""The mark of a place is another one once what is there may be another."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable, write_deltalake
from tests.sessions import no_session

from lakewright.lake.history import ABSENT, UNSEEN, mark_of, version_of
from lakewright.lake.lake import Lake
from lakewright.plan.resource import Resource
from lakewright.spark.conf import SessionSettings
from lakewright.spec.models.lake import LakeSettings

pa: Any = import_module("pyarrow")


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(LakeSettings(root_folder=str(tmp_path)), SessionSettings(tmp_path), sessions=no_session)


def test_a_table_is_marked_by_its_identity_and_version(lake: Lake, tmp_path: Path) -> None:
    place = tmp_path / "table"
    write_deltalake(str(place), pa.table({"id": [1]}))
    write_deltalake(str(place), pa.table({"id": [2]}), mode="append")
    name = str(DeltaTable(str(place)).metadata().id)
    assert version_of(mark_of(lake, Resource.file(str(place)))) == (name, 1)


def test_files_are_marked_by_what_is_listed_of_them(lake: Lake, tmp_path: Path) -> None:
    (tmp_path / "days").mkdir()
    (tmp_path / "days" / "1.csv").write_text("a")
    places = [Resource.file(str(tmp_path / each)) for each in ("days", "days/*.csv", "days/1.csv")]
    before = [mark_of(lake, each) for each in places]
    assert [mark_of(lake, each) for each in places] == before
    assert not {ABSENT, UNSEEN} & set(before)
    (tmp_path / "days" / "1.csv").write_text("ab")
    assert all(mark_of(lake, each) != was for each, was in zip(places, before, strict=True))


def test_nothing_and_what_only_spark_can_see_have_marks_of_their_own(lake: Lake, tmp_path: Path) -> None:
    assert mark_of(lake, Resource.file(str(tmp_path / "none"))) == ABSENT
    assert mark_of(lake, Resource.file("hdfs://there/table")) == UNSEEN
    assert mark_of(lake, Resource.jdbc("jdbc:x/orders")) == UNSEEN
    assert mark_of(lake, Resource.table("db.orders")) == UNSEEN


def test_a_log_that_cannot_be_read_is_not_seen(lake: Lake, tmp_path: Path) -> None:
    log = tmp_path / "table" / "_delta_log"
    log.mkdir(parents=True)
    (log / f"{0:020}.json").write_text("{")
    assert mark_of(lake, Resource.file(str(tmp_path / "table"))) == UNSEEN
