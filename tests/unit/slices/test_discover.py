"""What bronze holds: names, order, ids and fingerprints of slices."""

from __future__ import annotations

import os
from pathlib import Path
from typing import cast

import pytest

from lakewright.errors import StorageUnavailable
from lakewright.lake.lake import Lake
from lakewright.slices.discovery import (
    canonical_id,
    find_slice,
    item_id,
    list_bronze,
    list_slices,
    natural_key,
)
from lakewright.spec.models.slice_folder import SliceFolder

NO_LAKE = cast("Lake", None)


def put(folder: Path, *names: str, text: str = "x") -> None:
    for name in names:
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


def names(folder: Path) -> list[str]:
    return [slice_.name for slice_ in list_slices(SliceFolder(str(folder)), NO_LAKE)]


def test_slices_come_in_natural_order_of_their_names(tmp_path: Path) -> None:
    put(tmp_path, "s10", "s9", "s1", "2024-01-10.parquet", "2024-01-09.parquet", "a b", "s09")
    assert names(tmp_path) == ["2024-01-09.parquet", "2024-01-10.parquet", "a b", "s1", "s09", "s9", "s10"]


def test_hidden_names_and_folders_still_written_are_no_slices(tmp_path: Path) -> None:
    put(tmp_path, "_x", ".y", "writing/_temporary/0/part", "writing/part", "done/part")
    (tmp_path / "empty").mkdir()
    assert names(tmp_path) == ["done"]


def test_a_slice_has_the_files_that_are_read_and_folders_of_partitions_may_start_with_an_underscore(
    tmp_path: Path,
) -> None:
    put(tmp_path, "s/a", "s/_h=1", "s/.b", "s/_p=1/a", "s/_p/a", "s/.q/a", "s/_p=1/_c")
    (found,) = list_slices(SliceFolder(str(tmp_path)), NO_LAKE)
    assert [file.name for file in found.files] == ["_p=1/a", "a"]


def test_endings_of_files_that_are_being_copied_are_told_as_not_complete(tmp_path: Path) -> None:
    endings = ("_COPYING_", "tmp", "part", "filepart")
    put(
        tmp_path,
        *(f"2024-05-0{n}.csv.{end}" for n, end in enumerate(endings)),
        "s1/a.csv",
        "s1/b.csv.tmp",
        "s2.csv",
    )
    assert names(tmp_path) == ["s2.csv"]
    assert len(list_bronze(SliceFolder(str(tmp_path)), NO_LAKE).incomplete) == 5
    assert find_slice(SliceFolder(str(tmp_path)), "s1", NO_LAKE) is None
    (tmp_path / "s1" / "b.csv.tmp").rename(tmp_path / "s1" / "b.csv")
    assert names(tmp_path) == ["s1", "s2.csv"]


def test_where_siblings_carry_a_mark_of_their_end_a_folder_without_is_still_written(tmp_path: Path) -> None:
    put(tmp_path, "s1/part", "s1/_SUCCESS", "s2/part", "s3.parquet")
    assert names(tmp_path) == ["s1", "s3.parquet"]
    put(tmp_path, "s2/_SUCCESS")
    assert names(tmp_path) == ["s1", "s2", "s3.parquet"]


def test_nothing_is_found_where_nothing_is(tmp_path: Path) -> None:
    assert names(tmp_path / "nowhere") == []
    assert find_slice(SliceFolder(str(tmp_path)), "s1", NO_LAKE) is None


def test_a_fingerprint_tells_contents_apart(tmp_path: Path) -> None:
    put(tmp_path, "s1/a", "s1/b=1/c", "s1/_b=1/d", "s1/_meta", "s1/.crc")
    found = find_slice(SliceFolder(str(tmp_path)), "s1", NO_LAKE)
    assert found is not None
    assert [file.name for file in found.files] == ["_b=1/d", "a", "b=1/c"]
    before = found.fingerprint
    assert (before["size"], before["files"]) == (3, 3)

    os.utime(tmp_path / "s1/a", ns=(1, 1))
    after = find_slice(SliceFolder(str(tmp_path)), "s1", NO_LAKE)
    assert after is not None
    assert after.fingerprint != before


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/lake/a b", "file:///lake/a%20b"),
        ("/lake/a%20b", "file:///lake/a%2520b"),
        ("file:///lake/a%20b/", "file:///lake/a%20b"),
        ("/lake/x/../y", "file:///lake/y"),
        ("s3a://lake/a b/", "s3://lake/a b"),
        ("/lake/h#1?", "file:///lake/h%231%3F"),
        ("/lake/x:y", "file:///lake/x:y"),
    ],
)
def test_a_place_has_one_id(path: str, expected: str) -> None:
    """Whatever its scheme is called and whether it ends with a slash."""
    assert item_id(path) == expected
    assert canonical_id(expected) == expected


@pytest.mark.parametrize("uri", ["file:/lake/a%20b", "file:///lake/a%20b/", "FILE:///lake/a b"])
def test_ids_that_were_written_otherwise_are_found(uri: str) -> None:
    assert canonical_id(uri) == "file:///lake/a%20b"


def test_natural_keys_compare_whatever_the_names() -> None:
    mixed = ["a", "1a", "a1", "²", "01", "1", "9" * 50]
    assert sorted(mixed, key=natural_key) == ["01", "1", "1a", "9" * 50, "a", "a1", "²"]


def test_a_file_in_place_of_a_bronze_folder_is_said_to_be_one(tmp_path: Path) -> None:
    """It was told to let the user read it."""
    (tmp_path / "orders").touch()
    with pytest.raises(StorageUnavailable, match="orders can't be read: a file stands there") as caught:
        list_slices(SliceFolder(str(tmp_path / "orders")), NO_LAKE)
    assert caught.value.remedy == "Move the file away, and bring the folder back if it was moved."
