"""Targets that copy, merge, write and remove files of this machine, without an engine (E14)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.commands import InProcess
from tests.contexts import make_context
from tests.projects import make_workspace

from lakewright.errors import LakewrightError, SpecError, TargetError, VerificationError
from lakewright.plan.phase import Phase
from lakewright.targets.context import Context
from lakewright.targets.target import Target

MODEL = """
targets:
  copied: {kind: copyFile, source: in/a.txt, target: out/a.txt}
  got: {kind: getFile, source: in, target: out/all}
  put: {kind: putFile, source: in/a.txt, target: out/a.txt, overwrite: false}
  lost: {kind: copyFile, source: nowhere, target: out/b}
  merged: {kind: mergeFiles, source: in, target: out/merged, delimiter: "-"}
  deleted: {kind: deleteFile, location: in}
  kept: {kind: deleteFile, location: in, recursive: false}
  root: {kind: deleteFile, location: ..}
  over: {kind: getFile, source: in, target: .}
  schema: {kind: schema, file: out/schema.json, schema: {fields: [{name: id, type: int, nullable: false},
    {name: at, type: timestamp, description: When}, {name: parts, type: "array<struct<x: decimal(5,2)>>"}]}}
  spark: {kind: schema, format: spark, file: out/spark.json, schema: {kind: avro, file: out/schema.json}}
  away: {kind: local, mapping: rows, filename: "s3a://x/y.csv"}
mappings: {rows: {kind: values, columns: {x: int}}}
"""


@pytest.fixture
def context(tmp_path: Path) -> Context:
    folder = tmp_path / "project" / "in"
    folder.mkdir(parents=True)
    for name, text in (("a.txt", "1"), ("b.txt", "2"), ("_SUCCESS", "no")):
        (folder / name).write_text(text)
    return make_context(make_workspace(folder.parent, MODEL))


def target(context: Context, name: str) -> Target:
    return Target.named(context.workspace, name)


def test_a_file_or_folder_is_copied_and_removed_again(context: Context) -> None:
    """E14: copyFile, getFile and putFile."""
    out = context.workspace.project.basedir / "out"
    copied = target(context, "copied")
    assert copied.dirtiness(Phase.BUILD, copied.observe(context), context.defaults).is_to_run
    with pytest.raises(VerificationError, match="does not exist"):
        copied.execute(context, Phase.VERIFY)
    copied.execute(context, Phase.BUILD)
    copied.execute(context, Phase.VERIFY)
    assert (out / "a.txt").read_text() == "1"
    assert not copied.dirtiness(Phase.BUILD, copied.observe(context), context.defaults).is_to_run
    for _ in range(2):
        target(context, "got").execute(context, Phase.BUILD)
    assert sorted(file.name for file in (out / "all").iterdir()) == ["_SUCCESS", "a.txt", "b.txt"]
    with pytest.raises(TargetError, match="exists already"):
        target(context, "put").execute(context, Phase.BUILD)
    with pytest.raises(TargetError, match="nowhere does not exist"):
        target(context, "lost").execute(context, Phase.BUILD)
    for name in ("copied", "got"):
        target(context, name).execute(context, Phase.DESTROY)
    assert list(out.iterdir()) == []


def test_files_are_merged_in_the_order_of_their_names(context: Context) -> None:
    """E14: mergeFiles; what Spark's readers skip isn't merged."""
    outcome = target(context, "merged").execute(context, Phase.BUILD)
    assert outcome.metrics == {"files": 2}
    assert (context.workspace.project.basedir / "out" / "merged").read_text() == "1-2"
    resources = target(context, "merged").requires(context.workspace, Phase.BUILD)
    assert {str(each) for each in resources} == {f"file:{context.workspace.project.basedir}/in"}


def test_files_are_deleted_and_replaced_but_never_the_project(context: Context) -> None:
    """E14: deleteFile, getFile."""
    deleted = target(context, "deleted")
    with pytest.raises(TargetError, match="holds files"):
        target(context, "kept").execute(context, Phase.BUILD)
    for name, phase in (("root", Phase.BUILD), ("over", Phase.BUILD), ("over", Phase.DESTROY)):
        with pytest.raises(SpecError, match="contains the project itself"):
            target(context, name).execute(context, phase)
    assert deleted.dirtiness(Phase.BUILD, deleted.observe(context), context.defaults).is_to_run
    deleted.execute(context, Phase.BUILD)
    assert not (context.workspace.project.basedir / "in").exists()
    assert not deleted.dirtiness(Phase.BUILD, deleted.observe(context), context.defaults).is_to_run


def test_a_schema_is_written_as_avro_and_read_again(context: Context) -> None:
    """E14: the `schema` target."""
    out = context.workspace.project.basedir / "out"
    assert target(context, "schema").execute(context, Phase.BUILD).metrics == {"columns": 3}
    document = json.loads((out / "schema.json").read_text())
    assert document["fields"][:2] == [
        {"name": "id", "type": "int"},
        {
            "name": "at",
            "type": ["null", {"type": "long", "logicalType": "timestamp-micros"}],
            "doc": "When",
        },
    ]
    target(context, "spark").execute(context, Phase.BUILD)
    fields = json.loads((out / "spark.json").read_text())["fields"]
    assert [field["type"] for field in fields[:2]] == ["integer", "timestamp"]
    assert fields[2]["type"]["elementType"]["fields"][0]["type"] == "decimal(5,2)"


def test_a_file_of_another_machine_is_refused_in_words(context: Context) -> None:
    """E14: the `local` target writes where the job runs."""
    with pytest.raises(LakewrightError, match="is not a file of this machine"):
        target(context, "away").observe(context)


SHORT = """
targets:
  short: {kind: deltaVacuum, retentionTime: RETENTION, relation: {kind: delta, location: delta}}
jobs:
  tidy: {environment: [keep=P6D], targets: [short]}
"""


@pytest.mark.parametrize(("text", "is_told"), [("PT1H", True), ("'${keep}'", True), ("P7D", False)])
def test_a_vacuum_never_takes_files_that_may_be_in_use(tmp_path: Path, text: str, is_told: bool) -> None:
    """E14: deltaVacuum; whatever Delta's own check says. Only the run, at its end, told it."""
    (tmp_path / "project.yml").write_text("name: x\nmodules: [m.yml]\nlake: {root_folder: lake}\n")
    (tmp_path / "m.yml").write_text(SHORT.replace("RETENTION", text))
    for command in (["validate"], ["plan", "tidy", "build"]):
        done = InProcess(tmp_path).run(*command)
        assert ("is shorter than a week" in done.all) == is_told, done.all
        assert is_told == (done.code != 0), done.all
