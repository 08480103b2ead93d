"""What `doctor` says of a project's places: OK is said only of what was tried."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
from obstore.store import MemoryStore

from lakewright.app import App
from lakewright.lake.object_storage import Bucket, ObjectStorage
from lakewright.spec.models.storage import StorageSettings
from lakewright.stores.delta.backend import DeltaBackend
from lakewright.stores.sqlite.backend import SqliteBackend
from lakewright.usecases.diagnose import Check, project_checks


class Disk:
    """An object store in memory that counts what is written, and may refuse to write or to remove."""

    def __init__(self, refuses: str = "", *, forgets: bool = False) -> None:
        self.objects, self.refuses, self.forgets = MemoryStore(), refuses, forgets
        self.written: list[str] = []

    def put(self, key: str, content: bytes, mode: str = "overwrite") -> None:
        self.check("put")
        self.written.append(key)
        self.objects.put(key, content, mode=cast("Any", "overwrite" if self.forgets else mode))

    def delete(self, keys: list[str]) -> None:
        self.check("delete")
        self.objects.delete(keys)

    def check(self, what: str) -> None:
        if what == self.refuses:
            raise PermissionError("<Code>AccessDenied</Code>")

    @property
    def left(self) -> list[str]:
        return [meta["path"] for page in self.objects.list() for meta in page]


def opened(folder: Path, root: str, manifest: str = "{kind: sqlite}") -> App:
    lines = (
        "name: shop",
        "modules: [model]",
        f"lake: {{root_folder: '{root}'}}",
        f"manifest: {manifest}",
        "storage: {single_driver: true}",
    )
    (folder / "model").mkdir()
    (folder / "project.yml").write_text("\n".join(lines))
    return App.open(folder, environ={})


def check_of(app: App, name: str, *, starts_session: bool = False) -> Check:
    return next(each for each in project_checks(app, starts_session=starts_session) if each.name == name)


def in_s3(app: App, disk: Disk, *, single_driver: bool = False) -> App:
    storage = ObjectStorage(StorageSettings(single_driver=single_driver), {})
    storage._buckets["s3", "lake"] = Bucket("s3://lake", cast("Any", disk), "")
    app.lake.storage = storage
    return app


def test_write_access_to_s3_is_tried_and_nothing_is_left(tmp_path: Path) -> None:
    disk = Disk()
    found = check_of(in_s3(opened(tmp_path, "s3a://lake/shop"), disk), "write access")
    assert (found.is_ok, found.message) == (True, "a file was written to s3a://lake/shop, and removed")
    assert len(set(disk.written)) == 1
    assert disk.written[0].startswith("shop/.lakewright/probe-")
    assert disk.left == []


@pytest.mark.parametrize(("refuses", "what"), [("put", "written"), ("delete", "removed")])
def test_write_access_to_s3_that_is_refused_is_not_ok(tmp_path: Path, refuses: str, what: str) -> None:
    found = check_of(in_s3(opened(tmp_path, "s3a://lake/shop"), Disk(refuses)), "write access")
    assert found.is_ok is False
    assert f"can't be {what}: access is denied (AccessDenied)" in found.message
    assert "Give the credentials the right to list, read and write there" in str(found.remedy)


def test_a_store_that_lets_two_drivers_write_an_object_is_not_ok(tmp_path: Path) -> None:
    disk = Disk(forgets=True)
    app = in_s3(opened(tmp_path, "s3a://lake/shop"), disk)
    found = check_of(app, "write access")
    assert (found.is_ok, disk.left) == (False, [])
    assert "ignores `If-None-Match`" in found.message
    assert check_of(in_s3(app, disk, single_driver=True), "write access").is_ok


def test_what_only_spark_can_write_to_is_skipped_in_words_until_spark_is_asked_for(tmp_path: Path) -> None:
    app = opened(tmp_path, "hdfs://name/shop")
    found = check_of(app, "write access")
    assert found.is_ok is None
    assert found.message == "not checked: only Spark can write to hdfs://name/shop"
    assert "lakewright doctor --start" in str(found.remedy)


@pytest.mark.parametrize(
    ("touch", "said"),
    [
        (lambda place: (place / "shop").mkdir(parents=True), "lake/shop is writable"),
        (lambda place: None, "will be created there"),
        (lambda place: place.write_text("no folder"), "lake is a file"),
    ],
)
def test_a_local_lake_is_tried_where_it_is_or_will_be(
    tmp_path: Path, touch: Callable[[Path], None], said: str
) -> None:
    touch(tmp_path / "lake")
    found = check_of(opened(tmp_path, f"file://{tmp_path}/lake/shop"), "write access")
    assert said in found.message
    assert found.is_ok is ("is a file" not in said)


def test_a_manifest_that_can_only_be_read_is_not_ok(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app = opened(tmp_path, str(tmp_path))
    assert "the first run creates it" in check_of(app, "manifest").message
    app.make_store()
    assert check_of(app, "manifest").message == "sqlite, answers, 0 verdicts"
    monkeypatch.setattr(SqliteBackend, "is_writable", False)
    found = check_of(app, "manifest")
    assert found.is_ok is False
    assert "manifest.db can be read, but this user may not write to it: a run would fail" in found.message
    assert "this file, " in str(found.remedy)
    assert "manifest.db-shm and its folder" in str(found.remedy)


def test_a_manifest_whose_right_to_write_is_not_known_says_that_it_was_not_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(DeltaBackend, "local_place", None)  # as of a table in object storage
    app = opened(tmp_path, str(tmp_path), f"{{kind: delta, location: '{tmp_path}/manifest'}}")
    assert check_of(app, "manifest").message.endswith("the first run creates it; that was not tried")
    app.make_store()
    assert check_of(app, "manifest").message.endswith("0 verdicts; writing was not tried")
