"""A project in a process that runs for long: rules of `serve`, warm session (files are read afresh)."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from lakewright.app import App
from lakewright.errors import SpecError
from lakewright.serve.watched_project import WatchedProject

ENTITY = "entities: {orders: {id: 1, connection: shop, processtype: full}}\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A small project."""
    (tmp_path / "model").mkdir()
    (tmp_path / "project.yml").write_text("name: shop\nmodules: [model]\nlake: {root_folder: lake}\n")
    (tmp_path / "model" / "a.yml").write_text(ENTITY + "connections: {shop: {}}\n")
    return tmp_path


def opener(folder: Path) -> Callable[[Callable[[Path], None]], App]:
    return lambda on_read: App.open(folder, environ={}, on_read=on_read)


def test_a_project_is_loaded_again_only_when_a_file_has_changed(folder: Path) -> None:
    project = WatchedProject(opener(folder))
    first = project.app()
    assert project.app() is first
    (folder / "model" / "b.yml").write_text(ENTITY.replace("orders", "people").replace("1", "2"))
    assert set(project.app().project.entities) == {"orders", "people"}
    (folder / "model" / "b.yml").unlink()
    assert set(project.app().project.entities) == {"orders"}


def test_a_file_of_the_same_size_and_time_is_read_again(folder: Path) -> None:
    project = WatchedProject(opener(folder))
    project.app()
    file = folder / "model" / "a.yml"
    times = (file.stat().st_atime_ns, file.stat().st_mtime_ns)
    file.write_text(file.read_text().replace("orders", "people"))
    os.utime(file, ns=times)
    assert set(project.app().project.entities) == {"people"}


def test_a_broken_project_is_an_error_until_it_is_mended(folder: Path) -> None:
    opened: list[Path] = []

    def opening(on_read: Callable[[Path], None]) -> App:
        opened.append(folder)
        return opener(folder)(on_read)

    project = WatchedProject(opening)
    project.app()
    file = folder / "model" / "a.yml"
    whole = file.read_text()
    file.write_text(whole.replace("full", "fool"))
    for _ in range(2):
        with pytest.raises(SpecError, match="fool"):
            project.app()
    assert len(opened) == 2
    file.write_text(whole)
    assert set(project.app().project.entities) == {"orders"}


def test_a_folder_without_a_project_is_an_error_until_there_is_one(tmp_path: Path) -> None:
    project = WatchedProject(opener(tmp_path))
    with pytest.raises(SpecError, match=r"no project\.yml"):
        project.app()
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "a.yml").write_text("")
    (tmp_path / "project.yml").write_text("name: shop\nmodules: [model]\n")
    assert project.app().project.name == "shop"


def test_the_manifest_stays_open_while_only_definitions_change(folder: Path) -> None:
    project = WatchedProject(opener(folder))
    store = project.app().store
    (folder / "model" / "a.yml").write_text("")
    assert project.app().store is store
    (folder / "project.yml").write_text("name: shop\nmodules: [model]\nmanifest: {path: other.db}\n")
    assert project.app().store is not store
    project.close()
