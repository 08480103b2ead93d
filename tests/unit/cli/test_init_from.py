"""`init --from`: what it writes and prints, and what it refuses without writing anything."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.commands import InProcess
from tests.unit.profiling.landing import csv, write

PEOPLE = csv("id,name", (f"{n},Ada" for n in range(30)))
FILES = {
    "landing/people/2024-05-01.csv": PEOPLE,
    "landing/people/2024-05-02.csv": PEOPLE,
    "landing/x.pdf": "%",
}


@pytest.fixture
def here(tmp_path: Path) -> InProcess:
    write(tmp_path, FILES)
    return InProcess(tmp_path)


def tree(folder: Path) -> Mapping[str, bytes]:
    return {str(file): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def test_it_writes_one_file_and_leaves_the_place_as_it_is(here: InProcess) -> None:
    before = tree(here.folder / "landing")
    done = here.run("init", ".", "--from", "landing")
    assert done.code == 0, done.err
    assert tree(here.folder / "landing") == before
    assert {file.name for file in here.folder.iterdir()} == {"landing", "project.yml"}
    declared = yaml.safe_load((here.folder / "project.yml").read_text("utf-8"))
    assert declared["entities"] == {
        "people": {
            "from": "landing/people/*.csv",
            "key": "id",
            "strategy": "historic",
            "deletes": "snapshot",
            "columns": {"id": "bigint"},
        }
    }


def test_its_document_has_the_guesses_and_what_was_left_out(here: InProcess) -> None:
    found: Any = here.json("init", "shop", "--from", "landing")
    assert [each["name"] for each in found["entities"]] == ["people"]
    assert found["entities"][0]["reasons"]["load"] == {"code": "snapshot", "share": 1.0, "pairs": 1}
    assert found["skipped"] == [{"name": "x.pdf", "code": "not_data"}]
    assert (found["questions"], found["further_questions"]) == ([], 0)
    assert found["entities"][0]["settings"]["from"] == str(here.folder / "landing/people/*.csv")


def test_several_places_and_single_files_make_one_project(here: InProcess) -> None:
    write(here.folder, {"other/shops.csv": "code;town\n01;Bonn\n"})
    found: Any = here.json(
        "init", "shop", "--from", "landing", "--from", "other/shops.csv", "--from", "landing/people"
    )
    assert [each["name"] for each in found["entities"]] == ["people", "shops"]
    assert found["entities"][1]["settings"]["format"] == {"kind": "csv", "separator": ";"}


def existing(here: InProcess) -> None:
    write(here.folder, {"shop/project.yml": "name: shop\n"})


def rubbish(here: InProcess) -> None:
    write(here.folder, {"rubbish/a.bin": b"\0", "rubbish/b.csv": ""})


def nothing(here: InProcess) -> None:
    (here.folder / "rubbish").mkdir()


def file(here: InProcess) -> None:
    (here.folder / "shop").write_text("")


REFUSED: Mapping[str, tuple[Callable[[InProcess], None] | None, tuple[str, ...], str]] = {
    "no such place": (None, ("shop", "--from", "nowhere"), "there is nothing at"),
    "an empty place": (nothing, ("shop", "--from", "rubbish"), "which is empty"),
    "only rubbish": (rubbish, ("shop", "--from", "rubbish"), "a.bin"),
    "a project already": (existing, ("shop", "--from", "landing"), "has a project already"),
    "a file in the folder's place": (file, ("shop", "--from", "landing"), "is not a folder"),
    "a folder in the place": (None, ("landing/shop", "--from", "landing"), "nothing is written"),
    "the place itself": (None, ("landing", "--from", "landing"), "nothing is written"),
    "a template too": (None, ("shop", "--from", "landing", "--template", "full"), "exclude each other"),
    "a place that only Spark can list": (None, ("shop", "--from", "hdfs://x/y"), "without Spark"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused_writes_nothing(case: str, here: InProcess) -> None:
    prepare, arguments, said = REFUSED[case]
    if prepare is not None:
        prepare(here)
    before = tree(here.folder)
    done = here.run("init", *arguments)
    assert done.code == 2
    assert said in done.err.replace("\n", " ")
    assert tree(here.folder) == before


def test_a_folder_without_rights_is_an_error(here: InProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: str) -> None:
        raise PermissionError(13, "Permission denied", os.fspath(path))

    monkeypatch.setattr("os.scandir", refuse)
    done = here.run("init", "shop", "--from", "landing")
    assert done.code != 0
    assert "can't be listed: Permission denied" in done.err.replace("\n", " ")
    assert not (here.folder / "shop").exists()
