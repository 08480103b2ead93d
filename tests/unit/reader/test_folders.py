"""Columns that the folders of files stand for."""

from __future__ import annotations

import os

import pytest

from lakewright.errors import SliceError
from lakewright.lake.paths import FileEntry
from lakewright.reader.files import folder_columns, folder_values
from lakewright.reader.source import Source


def source_of(*names: str) -> Source:
    return Source("the slice s1", "/lake/s1", tuple(FileEntry(name, 1) for name in names), "csv")


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("part-1.csv", {}),
        ("2024/05/01/orders.csv", {}),
        ("plant=007/part=1.csv", {"plant": "007"}),
        ("plant=007/05/batch=12D/x", {"plant": "007", "batch": "12D"}),
        ("a=b=c/x", {"a": "b=c"}),
        ("rate=50%/x", {"rate": "50%"}),
        ("rate=50%25/x", {"rate": "50%"}),
        ("rate=%zz%2F%2f/x", {"rate": "%zz//"}),
        ("rate=%2525/x", {"rate": "%25"}),
        ("my%20name=1+1/x", {"my name": "1+1"}),
        ("é=ü%C3%BC/x", {"é": "üü"}),
        ("code=__HIVE_DEFAULT_PARTITION__/x", {"code": None}),
        ("code=/x", {"code": ""}),
        ("=1/x", {}),
        ("_year=2022/x", {"_year": "2022"}),
    ],
)
def test_values_of_folders_are_texts_decoded_once(name: str, values: dict[str, str | None]) -> None:
    assert folder_values(name) == values


def test_columns_of_folders_are_one_if_only_their_case_differs() -> None:
    source = source_of("x", "Plant=1/x", "plant=2/day=1/x", "a%3D=1/x")
    assert {name: sorted(written) for name, written in folder_columns(source).items()} == {
        "Plant": ["Plant", "plant"],
        "a=": ["a%3D"],
        "day": ["day"],
    }


@pytest.mark.parametrize("name", ["a=1/A=2/x", "a=%FF/x"])
def test_folders_that_say_nothing_clear_are_refused(name: str) -> None:
    with pytest.raises(SliceError) as refused:
        folder_columns(source_of(name))
    assert "a=" in refused.value.message or "a" in refused.value.message


def test_a_part_of_the_files_is_read_by_their_paths() -> None:
    source = source_of("a/x", "b/y")
    assert source.places == ["file:///lake/s1"]
    assert source.only(source.files).places == ["file:///lake/s1"]
    assert source.only(source.files[:1]).places == ["file:///lake/s1/a/x"]


def test_a_name_that_is_no_text_is_refused_and_shown() -> None:
    source_of("ä 😀/x").check_names()
    with pytest.raises(SliceError, match=r"/lake/s1/\\udcff\.csv is not UTF-8"):
        source_of(os.fsdecode(b"\xff.csv")).check_names()
