"""A file that can't be read is told as what it is, where it is, and what to do.

Tests may run as a user who may read everything. So errors come from links that point at themselves, or are
raised in place of the system's.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import pytest
from tests.contexts import make_context
from tests.projects import KINDS, make_workspace
from tests.unit.cli.surroundings import FakeApp, call_with

from lakewright.errors import NotInstalled, SpecError, StorageUnavailable, StoreUnavailable
from lakewright.lake.delta_log import LocalLog, read_log
from lakewright.lake.storage_errors import reading, storage_error
from lakewright.spark.jars import DELTA_JARS, missing_jars
from lakewright.spec.loading.loader import load_project
from lakewright.stores.memory import MemoryStore
from lakewright.stores.sqlite.backend import SqliteBackend
from lakewright.targets.target import Target

ACCESS = "Give the user who runs Lakewright access to it, then run again."
DELTALAKE = (
    "Kernel error -> Generic LocalFileSystem error\n          \x1b[31m↳\x1b[0m Unable to open file "
    "/lake/t/_delta_log/0.json\n           \x1b[31m↳\x1b[0m Permission denied (os error 13)\n"
)
PROJECT = """
connections:
  shop: {settings: {bronze_path: "${entity}", silver_path: "${entity}"}}
entities:
  orders: {id: 1, connection: shop, processtype: full}
targets:
  orders: {kind: entity, entity: orders}
"""


def denied(place: Path) -> PermissionError:
    return PermissionError(errno.EACCES, "Permission denied", str(place))


@pytest.mark.parametrize(
    ("error", "message", "remedy"),
    [
        (denied(Path("/lake/t")), "the table can't be read: /lake/t: Permission denied", ACCESS),
        (
            OSError(DELTALAKE),
            "the table can't be read: /lake/t/_delta_log/0.json: Permission denied",
            ACCESS,
        ),
        (
            OSError(errno.ELOOP, "Too many levels of symbolic links", "/lake/t"),
            "the table can't be read: /lake/t: Too many levels of symbolic links",
            StorageUnavailable.default_remedy,
        ),
        (OSError(), "the table can't be read: OSError", StorageUnavailable.default_remedy),
    ],
)
def test_an_error_of_the_system_says_what_where_and_what_to_do(
    error: OSError, message: str, remedy: str
) -> None:
    with pytest.raises(StorageUnavailable) as caught, reading("the table"):
        raise error
    assert (caught.value.message, caught.value.remedy) == (message, remedy)
    assert storage_error(error, "the table can't be read").message == message


@pytest.fixture
def closed() -> Iterator[None]:
    """Let nobody list a folder or look into it."""
    is_dir = Path.is_dir

    def refuse(self: Path) -> bool:
        if self.name == "_delta_log":
            raise denied(self)
        return is_dir(self)

    with mock.patch.object(Path, "is_dir", refuse):
        yield


@pytest.mark.usefixtures("closed")
def test_a_silver_table_that_can_not_be_read_is_told_by_the_plan(tmp_path: Path) -> None:
    with pytest.raises(StorageUnavailable, match=r"silver/orders can't be read: .*: Permission denied"):
        read_log(LocalLog(tmp_path / "lake/silver/orders"))
    context = make_context(make_workspace(tmp_path, PROJECT))
    with pytest.raises(StorageUnavailable):
        Target.named(context.workspace, "orders").observe(context)


def test_a_manifest_in_a_folder_that_can_not_be_read_is_an_error_of_its_own(tmp_path: Path) -> None:
    folder = tmp_path / ".lakewright"
    folder.symlink_to(folder)
    store = SqliteBackend({"kind": "sqlite", "path": str(folder / "manifest.db")})
    with mock.patch.object(Path, "exists", lambda self: (_ for _ in ()).throw(denied(self))):
        for ask in (store.open_existing, lambda: store.read(lambda _: None)):
            with pytest.raises(StoreUnavailable, match=r"the manifest .* can't be opened: Permission denied"):
                ask()


def test_a_module_folder_that_can_not_be_read_is_no_empty_one(tmp_path: Path) -> None:
    """Before, the project was valid, and declared nothing."""
    (tmp_path / "model").mkdir()
    (tmp_path / "model/m.yml").write_text("{}")
    list_folder = Path.iterdir

    def refuse(self: Path) -> Iterator[Path]:
        if self.name == "model":
            raise denied(self)
        return list_folder(self)

    (tmp_path / "project.yml").write_text("name: tests\nmodules: [model]\n")
    with (
        mock.patch.object(Path, "iterdir", refuse),
        pytest.raises(SpecError, match="module 'model' cannot be read: Permission denied"),
    ):
        load_project(tmp_path, kinds=KINDS, environ={})


def test_jars_that_can_not_be_read_are_no_missing_ones(tmp_path: Path) -> None:
    jar = tmp_path / DELTA_JARS[0].name
    jar.symlink_to(jar)
    with pytest.raises(NotInstalled, match=f"the jar {jar} can't be read: Too many levels") as caught:
        missing_jars(tmp_path)
    assert "LAKEWRIGHT_CACHE" in str(caught.value.remedy)


def test_status_says_that_bronze_can_not_be_read(tmp_path: Path) -> None:
    bronze = tmp_path / "bronze"
    bronze.symlink_to(bronze)
    answered = call_with(FakeApp(bronze=bronze, store=MemoryStore()), "status")
    assert f"the bronze folder {bronze} can't be read: Too many levels of symbolic links" in answered.out
    assert "Nothing is running" not in answered.out
