"""Projects that come with the tool, put into a folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakewright.errors import UsageError
from lakewright.usecases.declarations import packaged, write_project

MINIMAL = packaged("templates", "minimal")


def test_an_empty_folder_gets_every_file(tmp_path: Path) -> None:
    assert write_project(MINIMAL, tmp_path / "new" / "lake") > 3
    assert (tmp_path / "new" / "lake" / "project.yml").read_text() == MINIMAL.joinpath(
        "project.yml"
    ).read_text()


def test_what_was_changed_or_removed_stays_so(tmp_path: Path) -> None:
    write_project(MINIMAL, tmp_path)
    changed, removed = tmp_path / "project.yml", tmp_path / "landing" / "people" / "2022-01-01.csv"
    changed.write_text(changed.read_text() + "# mine\n")
    removed.unlink()
    assert write_project(MINIMAL, tmp_path) == 0
    assert changed.read_text().endswith("# mine\n")
    assert not removed.exists()


@pytest.mark.parametrize("name", ["project.yml", "notes.txt", "landing/people/2022-01-01.csv"])
def test_a_folder_with_something_else_is_left_alone(tmp_path: Path, name: str) -> None:
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).write_text("name: mine\n")
    with pytest.raises(UsageError, match="nothing was written"):
        write_project(MINIMAL, tmp_path)
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == [Path(name).name]


def test_a_file_in_place_of_the_folder_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="is not a folder"):
        write_project(MINIMAL, tmp_path / "file")


def test_what_a_cut_short_call_left_is_completed(tmp_path: Path) -> None:
    count = write_project(MINIMAL, tmp_path)
    (tmp_path / "project.yml").unlink()
    assert write_project(MINIMAL, tmp_path) == count
    assert (tmp_path / "project.yml").exists()
