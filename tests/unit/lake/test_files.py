from __future__ import annotations

import threading
from pathlib import Path

import pytest

from lakewright.lake.files import LocalFiles, append_folder, replace_folder
from lakewright.lake.paths import join

FILES = LocalFiles()


class Clumsy(LocalFiles):
    """A file system that can neither exchange names nor link."""

    def exchange(self, one: str, other: str) -> bool:
        del one, other
        return False

    def link(self, source: str, target: str) -> bool:
        del source, target
        return False


def folder(path: Path, *names: str) -> str:
    for name in names:
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_text(f"{path.name}/{name}")
    return str(path)


def held(path: str) -> list[str]:
    return [entry.name for entry in FILES.listed(path)]


@pytest.mark.parametrize("files", [FILES, Clumsy()])
def test_a_folder_takes_the_place_of_another(tmp_path: Path, files: LocalFiles) -> None:
    target = folder(tmp_path / "t", "old")
    replace_folder(files, folder(tmp_path / "s", "new", "p=1/new"), target)
    assert held(target) == ["new", "p=1/new"]
    assert [path.name for path in tmp_path.iterdir()] == ["t"]
    replace_folder(files, folder(tmp_path / "s", "first"), str(tmp_path / "deep/er"))
    assert held(str(tmp_path / "deep/er")) == ["first"]


def test_what_a_crash_between_two_renamings_left_is_put_back(tmp_path: Path) -> None:
    target = folder(tmp_path / "t", "old")
    FILES.rename(target, str(tmp_path / ".t.former"))
    staged = folder(tmp_path / "s", "new")

    class Stopping(Clumsy):
        def rename(self, source: str, target: str) -> None:
            if source == staged:
                raise KeyboardInterrupt
            super().rename(source, target)

    with pytest.raises(KeyboardInterrupt):
        replace_folder(Stopping(), staged, target)
    assert held(str(tmp_path / ".t.former")) == ["old"]
    replace_folder(FILES, staged, target)
    assert held(target) == ["new"]


@pytest.mark.parametrize("files", [FILES, Clumsy()])
def test_files_are_put_next_to_others(tmp_path: Path, files: LocalFiles) -> None:
    target = folder(tmp_path / "t", "old")
    append_folder(files, folder(tmp_path / "s", "new"), target)
    assert held(target) == ["new", "old"]
    append_folder(files, folder(tmp_path / "s", "first"), str(tmp_path / "other"))
    assert held(str(tmp_path / "other")) == ["first"]


def test_readers_see_the_one_or_the_other(tmp_path: Path) -> None:
    target = folder(tmp_path / "t", "a", "b")
    done = threading.Event()
    seen: set[tuple[str, ...]] = set()

    def watch() -> None:
        while not done.is_set():
            seen.add(tuple(sorted(path.name for path in Path(target).iterdir())))

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        for round_ in range(200):
            names = ("c", "d") if round_ % 2 == 0 else ("a", "b")
            replace_folder(FILES, folder(tmp_path / "s", *names), target)
    finally:
        done.set()
        watcher.join()
    assert seen <= {("a", "b"), ("c", "d"), (), ("a",), ("b",), ("c",), ("d",)}
    assert Path(target).exists()


def test_hidden_names_are_no_files_but_those_of_partitions(tmp_path: Path) -> None:
    path = folder(tmp_path / "t", "_SUCCESS", ".crc", "_tmp/x", "_year=1/x", "y/.z/x")
    assert held(path) == ["_year=1/x"]
    assert held(join(path, "missing")) == []


def test_a_folder_of_which_a_file_is_gone_is_not_listed_in_part(tmp_path: Path) -> None:
    place = folder(tmp_path / "a", "x", "p=1/y")
    assert list(FILES.listed(f"{place}/nowhere")) == list(FILES.listed(f"{place}/x/y")) == []
    (tmp_path / "a" / "z").symlink_to("gone")
    with pytest.raises(FileNotFoundError):
        list(FILES.listed(place))


def test_removing_what_is_not_there_is_no_error(tmp_path: Path) -> None:
    FILES.remove(str(tmp_path / "nothing"))
    link = tmp_path / "link"
    link.symlink_to(folder(tmp_path / "t", "kept"))
    FILES.remove(str(link))
    assert held(str(tmp_path / "t")) == ["kept"]


def test_a_name_with_brackets_is_a_name(tmp_path: Path) -> None:
    odd = folder(tmp_path / "a[1]", "x")
    folder(tmp_path / "a1", "y")
    assert FILES.matching(odd) == [odd]
    assert FILES.matching(str(tmp_path / "a?")) == [str(tmp_path / "a1")]
    assert FILES.matching(str(tmp_path / "b[1]")) == []


def test_a_pattern_means_the_same_as_in_hadoop(tmp_path: Path) -> None:
    for name in ("a1", "b1", "^1"):
        (tmp_path / name).touch()
    assert [Path(each).name for each in FILES.matching(f"{tmp_path}/[^a]1")] == ["^1", "b1"]
