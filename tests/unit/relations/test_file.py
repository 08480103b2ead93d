from __future__ import annotations

import gzip
import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from tests.projects import make_workspace

from lakewright.errors import SpecError, TargetError
from lakewright.plan.observation import Answer, Observation
from lakewright.plan.resource import Resource
from lakewright.relations.file import FileRelation
from lakewright.relations.relation import OutputMode, Relation
from lakewright.workspace.workspace import Workspace

FILES = """
relations:
  flat: {kind: file, format: csv, location: data/flat, options: {header: "true"}}
  divided:
    kind: file
    format: parquet
    location: data/divided
    partitions:
      - {name: day, type: date}
      - {name: code, type: string}
    schema: {kind: inline, fields: [{name: id, type: integer}]}
  patterned:
    kind: file
    format: text
    location: data/patterned
    pattern: ${day.format('yyyy/MM')}/*.txt
    partitions: [{name: day, type: date, granularity: P1M}]
  remote: {kind: file, format: csv, location: "s3a://bucket/lake/"}
"""


def relation(workspace: Workspace, name: str) -> FileRelation:
    found = Relation.named(workspace, name)
    assert isinstance(found, FileRelation)
    return found


@pytest.mark.parametrize(
    ("name", "partition", "expected"),
    [
        ("flat", {}, "/data/flat"),
        ("divided", {"day": "2022-01-02", "code": "a/b"}, "/data/divided/day=2022-01-02/code=a%2Fb"),
        ("divided", {"day": "2022-01-02T00:00:00"}, "/data/divided/day=2022-01-02"),
        ("divided", {"code": "x"}, "/data/divided/*/code=x"),
        ("patterned", {"day": "2022-03-17"}, "/data/patterned/2022/03/*.txt"),
        ("patterned", {}, "/data/patterned/*/*.txt"),
    ],
)
def test_a_partition_has_its_place(
    tmp_path: Path, name: str, partition: dict[str, str], expected: str
) -> None:
    workspace = make_workspace(tmp_path, FILES)
    assert relation(workspace, name).place(workspace, partition) == f"{tmp_path}{expected}"


@pytest.mark.parametrize(
    ("pattern", "code", "told"),
    [
        ("x_${code}", "a/b", "has a `/`, which makes another folder in the pattern 'x_${code}'"),
        ("${code.toUpperCase()}/x", "a/b", "has a `/`"),
        ("${code}", "..", "begins with a full stop"),
        ("x/${code}", ".hidden", "begins with a full stop"),
        ("x_${code}", "[ab]", "has a `[`, which stands for other names"),
        ("${code.replace('/', '_')}", "a/b", None),
        ("x_${code}", ".hidden", None),
        ("${code}", "a b=c:d_é", None),
    ],
)
def test_a_value_names_one_file_or_folder_in_a_pattern(
    tmp_path: Path, pattern: str, code: str, told: str | None
) -> None:
    column = "partitions: [{name: code, type: string}]"
    files = f'relations: {{coded: {{kind: file, location: data, pattern: "{pattern}", {column}}}}}'
    workspace = make_workspace(tmp_path, files)
    coded = relation(workspace, "coded")
    if told is None:
        coded.check_partition(workspace, {"code": code})
        assert coded.place(workspace, {"code": code}).startswith(f"{tmp_path}/data/")
        return
    for use in (coded.check_partition, coded.place, coded.resources):
        with pytest.raises(SpecError, match=re.escape(told)) as raised:
            use(workspace, {"code": code})
        assert raised.value.message.startswith(f"partition column code: the value {code!r} ")


def test_resources_of_partitions_are_parts_of_the_whole(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path, FILES)
    divided = relation(workspace, "divided")
    (whole,) = divided.resources(workspace)
    (part,) = divided.resources(workspace, {"code": "x"})
    (inner,) = divided.resources(workspace, {"day": "2022-01-01", "code": "x"})
    (other,) = divided.resources(workspace, {"day": "2022-01-01", "code": "y"})
    assert whole.contains(inner)
    assert part.intersects(inner)
    assert not part.intersects(other)
    assert relation(workspace, "remote").resources(workspace) == {Resource.file("s3://bucket/lake")}


def test_a_column_that_divides_nothing_is_refused(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path, FILES)
    with pytest.raises(SpecError, match="'codes' is not a partition column"):
        relation(workspace, "divided").place(workspace, {"codes": "x"})
    with pytest.raises(SpecError, match="partition column day"):
        relation(workspace, "divided").place(workspace, {"day": "yesterday"})


def observed(workspace: Workspace, name: str, **partition: str) -> Observation:
    return relation(workspace, name).observe(workspace, partition)


def test_what_is_missing_neither_exists_nor_is_filled(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path, FILES)
    found = observed(workspace, "flat")
    assert (found.exists, found.filled) == (Answer.NO, Answer.NO)
    assert found.subject == f"file:{tmp_path}/data/flat"


@pytest.mark.parametrize(
    ("name", "content", "filled"),
    [
        ("_SUCCESS", b"", Answer.NO),
        ("part.csv", b"", Answer.NO),
        ("part.csv", b"id,name\n", Answer.NO),
        ("part.csv", b"id,name", Answer.NO),
        ("part.csv", b"id,name\r\n\r\n", Answer.NO),
        ("part.csv", b"id,name\n1,x", Answer.YES),
        ("part.csv.gz", gzip.compress(b"id,name\n", mtime=0), Answer.NO),
        ("part.csv.gz", gzip.compress(b"id,name\n" + b"1,x\n" * 90_000, mtime=0), Answer.YES),
        ("part.csv.gz", b"id,name\n1,x", Answer.YES),
        ("part.csv.zst", b"whatever", Answer.YES),
        (".hidden.csv", b"id,name\n1,x", Answer.NO),
        ("_temporary/0/part.csv", b"id,name\n1,x", Answer.NO),
        ("year=2022/part.csv", b"id,name\n1,x", Answer.YES),
    ],
)
def test_files_are_filled_when_they_hold_rows(
    tmp_path: Path, name: str, content: bytes, filled: Answer
) -> None:
    file = tmp_path / "data" / "flat" / name
    file.parent.mkdir(parents=True)
    file.write_bytes(content)
    found = observed(make_workspace(tmp_path, FILES), "flat")
    assert (found.exists, found.filled) == (Answer.YES, filled)


@pytest.mark.parametrize(("rows", "filled"), [(0, Answer.NO), (3, Answer.YES)])
def test_rows_of_parquet_are_counted_without_spark(tmp_path: Path, rows: int, filled: Answer) -> None:
    folder = tmp_path / "data/divided/day=2022-01-01/code=x"
    folder.mkdir(parents=True)
    pd.DataFrame({"id": range(rows)}).to_parquet(folder / "part.parquet")
    workspace = make_workspace(tmp_path, FILES)
    assert observed(workspace, "divided").filled is filled
    assert observed(workspace, "divided", day="2022-01-01", code="x").filled is filled
    assert observed(workspace, "divided", day="2022-01-01").filled is filled
    assert observed(workspace, "divided", day="2022-01-02").filled is Answer.NO


def test_a_single_file_is_a_relation_too(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "flat").write_text("id\n1\n")
    assert observed(make_workspace(tmp_path, FILES), "flat").filled is Answer.YES


def test_a_pattern_finds_the_files_of_a_partition(tmp_path: Path) -> None:
    folder = tmp_path / "data/patterned/2022/03"
    folder.mkdir(parents=True)
    (folder / "a.txt").write_text("line\n")
    (folder / "b.log").write_text("line\n")
    workspace = make_workspace(tmp_path, FILES)
    assert observed(workspace, "patterned", day="2022-03-01").filled is Answer.YES
    assert observed(workspace, "patterned", day="2022-04-01").filled is Answer.NO


@pytest.mark.parametrize(
    ("location", "pattern"), [("x", "${year}/a-*.csv"), ("x", "${year}/a-?.csv"), ("x-*", "${year}")]
)
def test_rows_are_not_written_to_a_place_that_stands_for_many(
    tmp_path: Path, location: str, pattern: str
) -> None:
    """A folder of that very name was made, with the `*` in it."""
    more = f'pattern: "{pattern}", partitions: [{{name: year, type: int}}]'
    sections = f'relations:\n  r: {{kind: file, location: "{location}", {more}}}\n'
    workspace = make_workspace(tmp_path, sections)
    rows: Any = None  # they are not looked at
    with pytest.raises(
        TargetError, match=r"cannot be written to .*, whose `\*` and `\?` stand for many files"
    ):
        relation(workspace, "r").write(workspace, rows, partition={"year": "2024"}, mode=OutputMode.OVERWRITE)
    if "*" not in location:
        with pytest.raises(TargetError):  # as `validate` looks at it
            relation(workspace, "r").open_columns({"year": "2024"})


def test_nothing_outside_of_its_location_is_a_relations(tmp_path: Path) -> None:
    sections = """
    relations:
      named:
        kind: file
        location: data/named
        pattern: ${place}/x.csv
      wide: {kind: file, location: .}
      all: {kind: file, location: /}
    """
    workspace = make_workspace(tmp_path, sections, place="../..")
    with pytest.raises(SpecError, match=r"'\.\./\.\./x\.csv' is outside of its location"):
        relation(workspace, "named").place(workspace, {})
    for name in ("wide", "all"):
        with pytest.raises(SpecError, match="contains the project itself"):
            relation(workspace, name).destroy(workspace)
        with pytest.raises(SpecError, match="contains the project itself"):
            relation(workspace, name).truncate(workspace)
    assert (tmp_path / "project.yml").exists()


def test_folders_by_other_columns_are_told_before_create_refuses_them(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path, FILES)
    file = Path(relation(workspace, "divided").place(workspace, {})) / "country=de/a.csv"
    file.parent.mkdir(parents=True)
    file.write_text("id\n1\n")
    for partition in ({}, {"day": "2022-01-01", "code": "x"}):
        found = observed(workspace, "divided", **partition)
        assert [each.description for each in found.changes] == [
            "partitioned by day, code, but its files are in folders by country"
        ]
        assert found.refusal is not None
        assert found.refusal.message.startswith("relation 'divided': partitioned by day, code, but")
        assert "name another location" in str(found.refusal.remedy)
