"""The smaller kinds of targets, each through what it does."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.contexts import make_context
from tests.projects import make_workspace
from tests.sessions import same

from lakewright.errors import DataLossError, SpecError, TargetError, VerificationError
from lakewright.lake.spark_errors import query_failure, spark_errors, translated_failures
from lakewright.plan.dirtiness import Dirtiness
from lakewright.plan.outcome import Outcome
from lakewright.plan.permissions import Permissions
from lakewright.plan.phase import Phase
from lakewright.plan.status import Status
from lakewright.targets.context import RunOptions
from lakewright.targets.target import Target

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PROJECT = """
relations:
  t:
    kind: delta
    location: t
    partitions: [{name: day, type: date}]
    schema: {primaryKey: id, fields: [{name: id, type: int}, {name: v, type: string}]}
  old: {kind: file, format: csv, location: copied, options: {header: true}}
  narrow:
    kind: delta
    location: narrow
    schema: {fields: [{name: id, type: tinyint}, {name: v, type: varchar(2)}]}
  updated: {kind: delta, location: updated, mergeKey: id}
mappings:
  long: {kind: values, columns: {id: int, v: string}, records: [[1, "ab "], [2, abc]]}
  words: {kind: values, columns: {id: string, v: string}, records: [["7", a], [x, b]]}
  twice: {kind: values, columns: {id: int, v: string}, records: [[1, x], [1, y]]}
  fractions: {kind: values, columns: {n: double}, records: [[2.0], [3.7]]}
  days:
    kind: values
    columns: {id: int, v: string, day: string}
    records: [[1, a, 2022-01-01], [2, b, 2022-01-02]]
  nulls: {kind: values, columns: {n: int}, records: [[null]]}
  maps: {kind: sql, sql: "SELECT map('a', 1, 'b', 2) AS m"}
  new_twice: {kind: values, columns: {id: int, v: string}, records: [[null, x], [null, y], [9, z]]}
  more: {kind: values, columns: {id: int, v: string, note: string}, records: [[3, d, x], [5, e, y]]}
  some: {kind: values, columns: {id: int, v: string}, records: [[1, a], [2, b]]}
  changes:
    kind: values
    columns: {id: int, v: string, op: string}
    records: [[1, A, update], [2, "", delete], [3, c, insert], [4, x, ignore]]
targets:
  fill: {kind: relation, mapping: some, relation: t, partition: {day: 2022-01-01}}
  merge:
    kind: merge
    mapping: changes
    relation: t
    partition: {day: 2022-01-01}
    clauses:
      - {action: DELETE, condition: source.op = 'delete'}
      - {action: update, condition: source.op = 'update', columns: {v: "concat(target.v, source.v)"}}
      - {action: insert, condition: source.op = 'insert'}
  merge_first:
    kind: merge
    mapping: changes
    relation: {kind: delta, location: first}
    mergeKey: id
    clauses: [{action: insert, condition: source.op <> 'delete', columns: {id: source.id, v: source.v}}]
  merge_again:
    kind: merge
    mapping: more
    relation: {kind: delta, location: first}
    mergeKey: id
    clauses: [{action: update}, {action: insert}]
  merge_twice:
    kind: merge
    mapping: twice
    relation: {kind: delta, location: first}
    mergeKey: id
    clauses: [{action: update}]
  merge_new_twice:
    kind: merge
    mapping: new_twice
    relation: {kind: delta, location: first}
    mergeKey: id
    clauses: [{action: insert}]
  update_new_twice: {kind: relation, mapping: new_twice, relation: updated, mode: update}
  append: {kind: relation, mapping: more, relation: {kind: delta, location: first}, mode: append}
  undeclared: {kind: relation, mapping: some, relation: {kind: delta, location: undeclared}}
  append_declared:
    kind: relation
    mapping: more
    relation: {kind: delta, location: undeclared, schema: {fields: [{name: note, type: string}]}}
    mode: append
  short: {kind: relation, mapping: some, relation: narrow, mode: append}
  misfit: {kind: relation, mapping: long, relation: narrow, mode: append}
  parsed: {kind: copy, source: {kind: mapping, mapping: words}, target: {kind: relation, relation: narrow}}
  cut:
    kind: relation
    mapping: fractions
    relation: {kind: delta, location: whole, schema: {fields: [{name: n, type: int}]}}
  other_day: {kind: relation, mapping: days, relation: t, partition: {day: 2022-01-01}}
  other_day_copied:
    kind: copy
    source: {kind: mapping, mapping: days}
    target: {kind: relation, relation: t, partition: {day: 2022-01-01}}
  nulls:
    kind: relation
    mapping: nulls
    relation: {kind: delta, location: nulls, schema: {fields: [{name: n, type: int, nullable: false}]}}
  widened: {kind: relation, mapping: some, relation: {kind: delta, location: wide}}
  narrowed:
    kind: relation
    mapping: some
    relation:
      kind: delta
      location: wide
      schema: {fields: [{name: id, type: tinyint}, {name: v, type: string}]}
  maps:
    kind: compare
    actual: {kind: mapping, mapping: maps}
    expected: {kind: values, columns: {m: "map<string, int>"}, records: [[{b: 2, a: 1}]]}
  unfit:
    kind: compare
    actual: {kind: values, columns: {n: string}, records: [[x]]}
    expected: {kind: values, columns: {n: int}, records: [[null]]}
  unmergeable: {kind: merge, mapping: changes, relation: old, clauses: {action: insert}}
  count: {kind: count, mapping: some}
  console: {kind: console, input: {mapping: some}, limit: 1, columns: [v]}
  copy:
    kind: copy
    source: {kind: relation, relation: t, partition: {day: 2022-01-01}}
    target: {kind: file, format: csv, location: copied, options: {header: true}}
    schema: {file: copied.json}
    parallelism: 1
  copy_once:
    kind: copy
    source: {kind: relation, relation: t}
    target: {kind: file, format: csv, location: copied, options: {header: true}}
    mode: IGNORE
  copy_anew:
    kind: copy
    source: {kind: relation, relation: t}
    target: {kind: file, format: csv, location: copied, options: {header: true}}
    mode: ERROR_IF_EXISTS
  same:
    kind: compare
    actual: {kind: relation, relation: t}
    expected:
      kind: values
      columns: {id: bigint, v: string, day: date}
      records: [[3, c, 2022-01-01], [1, aA, 2022-01-01]]
  other:
    kind: compare
    actual: {kind: mapping, mapping: some}
    expected: {kind: values, columns: {ID: int, v: string}, records: [[1, a], [1, a]]}
  columns:
    kind: compare
    compareSchema: true
    actual: {kind: mapping, mapping: some}
    expected: {kind: values, columns: {id: bigint, w: string}, records: [[1, a]]}
  write: {kind: file, mapping: some, format: json, location: written, partition: {day: x}}
  truncate: {kind: truncate, relation: t, partitions: {day: {start: 2022-01-01, end: 2022-01-02}}}
  drop: {kind: drop, relation: old}
  nothing: {kind: empty}
"""


class Bench:
    """Targets of the project, run one after the other; what they say is kept."""

    def __init__(self, folder: Path, spark: SparkSession) -> None:
        self.workspace = make_workspace(folder, PROJECT, sessions=same(spark))
        self.said: list[str] = []
        self.warnings: list[str] = []
        self.context = make_context(self.workspace, say=self.said.append, warn=self.warnings.append)

    def dirtiness(self, name: str, phase: Phase) -> Dirtiness:
        target = Target.named(self.workspace, name)
        return target.dirtiness(phase, target.observe(self.context), self.context.defaults)

    def run(self, name: str, phase: Phase = Phase.BUILD) -> Outcome:
        return Target.named(self.workspace, name).execute(self.context, phase)


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Bench:
    return Bench(tmp_path_factory.mktemp("others"), spark)


def test_a_value_that_does_not_fit_its_column_fails_the_target(bench: Bench) -> None:
    assert bench.run("short").metrics["target_records"] == 2
    misfit = "column 'v': the value 'abc' doesn't fit the type varchar(2) in relation 'narrow'"
    with pytest.raises(TargetError, match=re.escape(misfit)):
        bench.run("misfit")
    with pytest.raises(TargetError, match="column 'id': the value 'x' doesn't fit the type tinyint"):
        bench.run("parsed")


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("cut", "column 'n': the value '3.7' doesn't fit the type int"),
        ("other_day", "a row of day=2022-01-02 would be written to day=2022-01-01"),
        ("other_day_copied", "a row of day=2022-01-02 would be written to day=2022-01-01"),
        ("nulls", "column n has a null, which its table forbids"),
    ],
)
def test_rows_that_would_be_changed_by_the_write_fail_the_target(bench: Bench, name: str, told: str) -> None:
    with pytest.raises((TargetError, *spark_errors())) as raised:
        bench.run(name)
    error = raised.value if isinstance(raised.value, TargetError) else query_failure(raised.value, "")
    assert error is not None
    assert told in error.message
    assert error.remedy


def test_rows_are_written_to_a_table_that_is_wider_than_declared(bench: Bench) -> None:
    bench.run("widened")
    assert bench.run("narrowed").metrics["target_records"] == 2


def test_maps_are_compared_and_values_that_do_not_fit_equal_no_null(bench: Bench) -> None:
    bench.run("maps", Phase.VERIFY)
    with pytest.raises(spark_errors()):
        bench.run("unfit", Phase.VERIFY)


def test_a_schema_of_fewer_columns_than_the_table_has_empties_none(bench: Bench) -> None:
    """To declare the new column alone, as a warning said, emptied the others."""
    bench.run("undeclared")
    bench.warnings.clear()
    bench.run("append_declared", Phase.CREATE)
    bench.run("append_declared")
    assert (
        "does not declare id, v, which its table has: they are written, but what reads" in bench.warnings[0]
    )
    place = str(bench.workspace.project.basedir / "undeclared")
    rows = bench.workspace.spark.read.format("delta").load(place).where("note is not null")
    assert sorted(map(tuple, rows.select("id", "v", "note").collect())) == [(3, "d", "x"), (5, "e", "y")]


def test_rows_are_merged_compared_copied_and_removed(bench: Bench) -> None:
    folder = bench.workspace.project.basedir
    bench.run("fill")
    assert bench.dirtiness("merge", Phase.BUILD).is_to_run
    merged = bench.run("merge").metrics
    assert merged == {"target_records": 3, "inserted": 1, "updated": 1, "deleted": 1}
    bench.run("same", Phase.VERIFY)
    # Without a schema, the first rows decide the columns; the merge says what it leaves out.
    assert bench.run("merge_first").metrics["inserted"] == 3
    bench.warnings.clear()
    assert bench.run("merge_again").metrics == {
        "target_records": 2,
        "inserted": 1,
        "updated": 1,
        "deleted": 0,
    }
    (told,) = bench.warnings
    assert "has no column note: the merge leaves it out" in told
    bench.warnings.clear()
    bench.run("append")
    assert "has no column note: the rows are written without it" in bench.warnings[0]
    match = "several rows to merge match the same row of the table"
    with pytest.raises(TargetError, match=match), translated_failures("in a test"):
        bench.run("merge_twice")
    # Delta would insert them all: the next run could neither merge nor tell them apart.
    for name in ("merge_new_twice", "update_new_twice"):
        match = "several rows to write have the same key, id=null"
        with pytest.raises(TargetError, match=match), translated_failures("in a test"):
            bench.run(name)
    with pytest.raises(SpecError, match="of kind 'file' is no Delta table"):
        bench.run("unmergeable")

    assert bench.dirtiness("copy", Phase.BUILD).is_to_run
    assert bench.run("copy").metrics["target_records"] == 2
    assert not bench.dirtiness("copy", Phase.BUILD).is_to_run
    bench.run("copy", Phase.VERIFY)
    assert bench.run("copy_once").status is Status.SKIPPED
    with pytest.raises(TargetError, match=r"target 'copy_anew': .* already holds rows"):
        bench.run("copy_anew")
    assert len(list((folder / "copied").glob("*.csv"))) == 1
    assert '"name": "day"' in (folder / "copied.json").read_text()

    assert bench.dirtiness("drop", Phase.CREATE).is_to_run
    with pytest.raises(DataLossError):
        bench.run("drop", Phase.CREATE)
    with pytest.raises(VerificationError):
        bench.run("drop", Phase.VERIFY)
    bench.context = make_context(
        bench.workspace, options=RunOptions(permissions=Permissions(allow_data_loss=True))
    )
    bench.run("drop", Phase.CREATE)
    assert not bench.dirtiness("drop", Phase.CREATE).is_to_run
    assert not bench.dirtiness("drop", Phase.DESTROY).is_to_run
    bench.run("drop", Phase.VERIFY)
    bench.run("copy", Phase.DESTROY)
    assert not (folder / "copied.json").exists()

    assert bench.dirtiness("truncate", Phase.BUILD).is_to_run
    with pytest.raises(VerificationError, match=r"not empty: file:.*/t\[day=2022-01-01\]"):
        bench.run("truncate", Phase.VERIFY)
    bench.run("truncate")
    assert not bench.dirtiness("truncate", Phase.BUILD).is_to_run
    bench.run("truncate", Phase.VERIFY)


def test_differences_are_shown(bench: Bench) -> None:
    with pytest.raises(VerificationError, match=r"unexpected: \(2, 'b'\); missing: \(1, 'a'\)"):
        bench.run("other", Phase.VERIFY)
    with pytest.raises(
        VerificationError, match="column w is missing; column v is not expected; column id is of"
    ):
        bench.run("columns", Phase.VERIFY)


def test_files_are_written_without_a_relation(bench: Bench) -> None:
    folder = bench.workspace.project.basedir / "written"
    bench.run("write", Phase.CREATE)
    assert bench.dirtiness("write", Phase.BUILD).is_to_run
    assert bench.run("write").metrics["target_records"] == 2
    assert [path.name for path in folder.iterdir() if path.name[0] != "."] == ["day=x"]
    assert not bench.dirtiness("write", Phase.BUILD).is_to_run
    bench.run("write", Phase.DESTROY)
    assert not folder.exists()


def test_what_is_said_goes_to_whoever_listens(bench: Bench) -> None:
    bench.context = make_context(bench.workspace, say=bench.said.append)
    assert bench.run("count").metrics == {"records": 2}
    assert bench.run("console").metrics == {"records": 1}
    assert bench.said == ["some: 2 rows", "v", "a"]
    for phase in Phase:
        assert not bench.dirtiness("nothing", phase).is_to_run
