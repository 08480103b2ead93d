"""A relation target through its life."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.contexts import make_context
from tests.projects import make_workspace
from tests.sessions import same

from lakewright.errors import DataLossError, MigrationError, SpecError, TargetError, VerificationError
from lakewright.manifest.lease import LEASE
from lakewright.plan.dirtiness import Dirtiness
from lakewright.plan.observation import Answer
from lakewright.plan.outcome import Outcome
from lakewright.plan.permissions import Permissions
from lakewright.plan.phase import Phase
from lakewright.plan.reason import Code
from lakewright.plan.status import Status
from lakewright.stores.memory import MemoryStore
from lakewright.targets.context import Context, RunOptions
from lakewright.targets.target import Target
from lakewright.workspace.workspace import Workspace

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PROJECT = """
relations:
  file: {kind: file, format: json, location: data/file, schema: {fields: [{name: id, type: int}]}}
  delta:
    kind: delta
    location: data/delta
    partitions: [{name: day, type: date}]
    schema: {fields: [{name: id, type: int}]}
mappings:
  two: {kind: values, columns: {id: int}, records: [[1], [2]]}
  none: {kind: values, columns: {id: int}}
targets:
  file: {kind: relation, mapping: two, relation: file}
  delta: {kind: relation, mapping: two, relation: delta, partition: {day: "2022-01-01"}, parallelism: 1}
  appending: {kind: relation, mapping: two, relation: file, mode: append, rebalance: true}
  careful: {kind: relation, mapping: two, relation: file, mode: ignoreIfExists}
  strict: {kind: relation, mapping: two, relation: file, mode: error}
  empty: {kind: relation, mapping: none, relation: file}
  tolerant: {kind: relation, mapping: none, relation: file, verifyPolicy: EMPTY_AS_SUCCESS_WITH_ERRORS}
  unkeyed: {kind: relation, mapping: two, relation: delta, mode: update}
"""


class Bench:
    """Targets of a project, run one after the other."""

    def __init__(self, folder: Path, spark: SparkSession, sections: str = PROJECT) -> None:
        self.workspace: Workspace = make_workspace(folder, sections, sessions=same(spark))
        self.context: Context = make_context(self.workspace)

    def dirtiness(self, name: str, phase: Phase) -> Dirtiness:
        target = Target.named(self.workspace, name)
        return target.dirtiness(phase, target.observe(self.context), self.context.defaults)

    def run(self, name: str, phase: Phase) -> Outcome:
        return Target.named(self.workspace, name).execute(self.context, phase)


@pytest.fixture
def bench(tmp_path: Path, spark: SparkSession) -> Bench:
    return Bench(tmp_path, spark)


@pytest.mark.parametrize("name", ["file", "delta"])
def test_each_phase_leaves_the_target_clean_for_it(bench: Bench, name: str) -> None:
    for phase in (Phase.CREATE, Phase.BUILD):
        assert bench.dirtiness(name, phase).is_to_run, phase
        assert bench.run(name, phase).status is Status.SUCCESS
        assert not bench.dirtiness(name, phase).is_to_run, phase
    assert bench.run(name, Phase.BUILD).metrics["target_records"] == 2
    assert bench.run(name, Phase.VERIFY).status is Status.SUCCESS
    for phase in (Phase.TRUNCATE, Phase.DESTROY):
        assert bench.dirtiness(name, phase).is_to_run, phase
        bench.run(name, phase)
        assert not bench.dirtiness(name, phase).is_to_run, phase
    with pytest.raises(VerificationError, match="does not exist"):
        bench.run(name, Phase.VERIFY)
    store = bench.context.ledger.store
    assert isinstance(store, MemoryStore)
    assert list(store.documents(LEASE)) == []


def test_modes_that_respect_what_is_there(bench: Bench) -> None:
    assert bench.run("careful", Phase.BUILD).metrics["target_records"] == 2
    skipped = bench.run("careful", Phase.BUILD)
    assert skipped.status is Status.SKIPPED
    assert skipped.reasons[0].code is Code.HAS_ROWS
    with pytest.raises(TargetError, match="already holds rows"):
        bench.run("strict", Phase.BUILD)
    bench.run("appending", Phase.BUILD)
    assert bench.workspace.relation("file").read(bench.workspace).count() == 4
    with pytest.raises(SpecError, match="no key to update rows by"):
        bench.run("unkeyed", Phase.BUILD)


def test_an_empty_relation_is_judged_by_policy(bench: Bench) -> None:
    bench.run("empty", Phase.BUILD)
    with pytest.raises(VerificationError, match="is empty"):
        bench.run("empty", Phase.VERIFY)
    assert bench.run("tolerant", Phase.VERIFY).status is Status.SUCCESS_WITH_ERRORS


def migrated(tmp_path: Path, spark: SparkSession, fields: str, **relation: str) -> Bench:
    settings = "".join(f", {key}: {value}" for key, value in relation.items())
    return Bench(
        tmp_path,
        spark,
        f"""
        relations:
          t: {{kind: delta, location: t, schema: {{fields: {fields}}}{settings}}}
        mappings:
          two: {{kind: values, columns: {{id: int}}, records: [[1], [2]]}}
        targets:
          t: {{kind: relation, mapping: two, relation: t}}
        """,
    )


def test_a_table_becomes_what_is_declared(tmp_path: Path, spark: SparkSession) -> None:
    first = migrated(tmp_path, spark, "[{name: id, type: int, nullable: false}]")
    first.run("t", Phase.CREATE)
    first.run("t", Phase.BUILD)

    wider = migrated(
        tmp_path,
        spark,
        "[{name: key, type: bigint, renamedFrom: id, description: The key}, {name: note, type: string}]",
        migrationPolicy="STRICT",
    )
    assert tuple(map(str, wider.dirtiness("t", Phase.CREATE).reasons)) == (
        "rename column id to key",
        "change column key from int to bigint",
        "allow nulls in column key",
        "change the comment of column key",
        "add column note string",
    )
    wider.run("t", Phase.CREATE)
    assert not wider.dirtiness("t", Phase.CREATE).is_to_run
    rows = wider.workspace.relation("t").read(wider.workspace).orderBy("key").collect()
    assert [tuple(row) for row in rows] == [(1, None), (2, None)]

    impossible = "[{name: key, type: int}]"
    with pytest.raises(MigrationError, match="change column key from bigint to int"):
        migrated(tmp_path, spark, impossible, migrationPolicy="STRICT").run("t", Phase.CREATE)
    replaced = migrated(
        tmp_path, spark, impossible, migrationPolicy="STRICT", migrationStrategy="ALTER_REPLACE"
    )
    seen = Target.named(replaced.workspace, "t").observe(replaced.context)
    assert seen.loses_rows
    assert seen.after(Phase.CREATE).filled is Answer.NO  # so BUILD of the same run fills it
    with pytest.raises(DataLossError, match="all its rows"):
        replaced.run("t", Phase.CREATE)
    replaced.context = make_context(
        replaced.workspace, options=RunOptions(permissions=Permissions(allow_data_loss=True))
    )
    replaced.run("t", Phase.CREATE)
    assert replaced.workspace.relation("t").fields(replaced.workspace)[0].type.ddl == "int"
    assert replaced.workspace.relation("t").read(replaced.workspace).isEmpty()
