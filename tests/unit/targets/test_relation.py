from __future__ import annotations

from datetime import date
from pathlib import Path

import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from deltalake import write_deltalake
from tests.contexts import make_context
from tests.projects import make_workspace

from lakewright.errors import SpecError
from lakewright.plan.observation import Answer, Observation, TableChange
from lakewright.plan.permissions import Permissions
from lakewright.plan.phase import Phase
from lakewright.plan.reason import Code
from lakewright.plan.status import Status
from lakewright.relations.migration import Tolerated
from lakewright.run.planning import node_of
from lakewright.spec.reason import Reason
from lakewright.targets.context import RunOptions, TargetDefaults
from lakewright.targets.target import Target
from lakewright.workspace.workspace import Workspace

PROJECT = """
relations:
  landing: {kind: file, location: landing/$month, options: {header: "true"}}
  bronze: {kind: file, format: parquet, location: bronze/$month}
  gold:
    kind: delta
    location: gold
    partitions: [{name: month, type: date}]
    schema: {fields: [{name: id, type: int}]}
  loose: {kind: delta, location: loose}
  fixed: {kind: values, columns: {id: int}, records: [[1]]}
mappings:
  landing: {kind: relation, relation: landing}
  bronze: {kind: relation, relation: bronze}
  ids: {kind: sql, sql: SELECT id FROM bronze}
  fixed: {kind: relation, relation: fixed}
targets:
  land: {kind: relation, mapping: landing, relation: bronze}
  build: {kind: relation, mapping: ids, relation: gold, partition: {month: $month}}
  append: {kind: relation, mapping: ids, relation: gold, mode: append}
  update: {kind: relation, mapping: ids, relation: gold, mode: update}
  strict: {kind: relation, mapping: ids, relation: gold, mode: errorIfExists}
  stricter: {kind: relation, mapping: ids, relation: gold, mode: errorIfExists, buildPolicy: always}
  copied_once:
    kind: copy
    source: {kind: mapping, mapping: ids}
    target: {kind: file, location: once}
    mode: error
  local: {kind: local, mapping: ids, filename: out.csv}
  schema: {kind: schema, schema: {kind: mapping, mapping: ids}, file: schema.json}
  loose: {kind: relation, mapping: ids, relation: loose}
  alone: {kind: relation, relation: gold}
  changed: {kind: relation, mapping: landing, relation: bronze, buildPolicy: ifChanged}
  copied:
    kind: copy
    source: {kind: mapping, mapping: ids}
    target: {kind: file, format: csv, location: copied}
  unwritable: {kind: relation, mapping: ids, relation: fixed}
"""


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return make_workspace(tmp_path, PROJECT, month="2022-01-01")


def names(workspace: Workspace, found: frozenset[object]) -> list[str]:
    return sorted(str(each).replace(str(workspace.project.basedir), "") for each in found)


BRONZE, GOLD = "file:/bronze/2022-01-01", "file:/gold"


@pytest.mark.parametrize(
    ("target", "phase", "requires", "provides"),
    [
        ("land", Phase.CREATE, [], [BRONZE]),
        ("land", Phase.BUILD, ["file:/landing/2022-01-01"], [BRONZE]),
        ("land", Phase.VERIFY, [BRONZE], []),
        ("build", Phase.CREATE, [], [GOLD]),
        ("build", Phase.BUILD, [BRONZE], [f"{GOLD}[month=2022-01-01]"]),
        ("build", Phase.TRUNCATE, [BRONZE], [f"{GOLD}[month=2022-01-01]"]),
        ("build", Phase.DESTROY, [BRONZE], [GOLD]),
        ("append", Phase.BUILD, [BRONZE], [GOLD]),
    ],
)
def test_resources_follow_from_the_mapping_and_the_relation(
    workspace: Workspace, target: str, phase: Phase, requires: list[str], provides: list[str]
) -> None:
    found = Target.named(workspace, target)
    assert names(workspace, found.requires(workspace, phase)) == requires
    assert names(workspace, found.provides(workspace, phase)) == provides


@pytest.mark.parametrize("kind", ["delta", "file", "table"])
@pytest.mark.parametrize("target", ["written", "emptied", "copied", "read"])
def test_an_empty_partition_value_is_refused_with_relation_and_parameter(
    tmp_path: Path, kind: str, target: str
) -> None:
    """Folders and Delta tables can't tell it from null: the rows would not be found again."""
    place = "table: codes" if kind == "table" else "location: codes"
    with pytest.raises(SpecError) as raised:
        planned_partition(tmp_path, place, kind, target, "")
    assert "relation 'codes': partition column code: the value is an empty text" in raised.value.message
    assert "(given as $code)" in raised.value.message
    assert raised.value.location is not None


def planned_partition(folder: Path, place: str, kind: str, target: str, text: str) -> None:
    project = f"""
relations:
  codes: {{kind: {kind}, {place}, partitions: [{{name: code, type: string}}]}}
mappings:
  ids: {{kind: values, columns: {{id: int}}}}
  of_code: {{kind: relation, relation: codes, partitions: {{code: $code}}}}
targets:
  written: {{kind: relation, mapping: ids, relation: codes, partition: {{code: $code}}}}
  emptied: {{kind: truncate, relation: codes, partitions: {{code: $code}}}}
  copied:
    kind: copy
    source: {{kind: mapping, mapping: ids}}
    target: {{kind: relation, relation: codes, partition: {{code: $code}}}}
  read: {{kind: console, input: {{kind: mapping, mapping: of_code}}}}
"""
    workspace = make_workspace(folder, project, code=text)
    node_of(Target.named(workspace, target), workspace, Phase.BUILD)


@pytest.mark.parametrize("target", ["written", "emptied", "copied", "read"])
@pytest.mark.parametrize("text", ["a/b", "../a", "*"])
def test_a_partition_value_that_makes_another_folder_of_a_pattern_is_refused(
    tmp_path: Path, target: str, text: str
) -> None:
    """Its rows would lie in the folder of another partition, or in that of none, and would not be read."""
    with pytest.raises(SpecError) as raised:
        planned_partition(tmp_path, "location: codes, pattern: 'x_${code}'", "file", target, text)
    assert f"relation 'codes': partition column code: the value {text!r} has a " in raised.value.message
    assert "(given as $code)" in raised.value.message
    assert raised.value.location is not None


@pytest.mark.parametrize("target", ["written", "emptied", "copied", "read"])
def test_a_partition_value_that_the_catalog_of_hive_cannot_keep_is_refused(
    tmp_path: Path, target: str
) -> None:
    """Hive's catalog finds `code=a` in place of `code=a `, and then refuses every new partition."""
    with pytest.raises(SpecError) as raised:
        planned_partition(tmp_path, "table: codes", "table", target, "a ")
    assert "relation 'codes': partition column code: the value 'a ' ends with a space" in raised.value.message
    assert "(given as $code)" in raised.value.message
    planned_partition(tmp_path, "table: codes", "table", target, " a")
    planned_partition(tmp_path, "table: codes", "delta", target, "a ")


def test_a_table_whose_columns_are_unknown_is_not_said_to_be_created(workspace: Workspace) -> None:
    """Without a schema the first write brings the columns, so CREATE leaves nothing."""
    outcome = Target.named(workspace, "loose").execute(make_context(workspace), Phase.CREATE)
    assert outcome.status is Status.SKIPPED
    assert outcome.reasons == (Reason(Code.MADE_BY_WRITE),)


def test_a_target_without_a_mapping_has_no_build_phase(workspace: Workspace) -> None:
    alone, build = (Target.named(workspace, name) for name in ("alone", "build"))
    assert alone.phases() == {Phase.CREATE, Phase.VERIFY, Phase.DESTROY}
    assert build.phases() == frozenset(Phase) - {Phase.VALIDATE}


def test_a_read_only_relation_is_rejected_as_output(workspace: Workspace) -> None:
    with pytest.raises(SpecError, match="kind 'values' cannot be written"):
        Target.named(workspace, "unwritable").provides(workspace, Phase.BUILD)


FILLED = Observation("x", exists=Answer.YES, filled=Answer.YES)
EMPTY = Observation("x", exists=Answer.YES, filled=Answer.NO)
MISSING = Observation("x", exists=Answer.NO, filled=Answer.NO)
UNSURE = Observation("x", exists=Answer.YES)


@pytest.mark.parametrize(
    ("target", "phase", "found", "default", "verdict"),
    [
        ("build", Phase.CREATE, MISSING, "", Answer.YES),
        ("build", Phase.CREATE, EMPTY, "", Answer.NO),
        ("build", Phase.BUILD, FILLED, "", Answer.NO),
        ("build", Phase.BUILD, EMPTY, "", Answer.YES),
        ("build", Phase.BUILD, UNSURE, "", Answer.UNKNOWN),
        ("append", Phase.BUILD, FILLED, "", Answer.YES),
        ("build", Phase.BUILD, FILLED, "buildPolicy=ALWAYS", Answer.YES),
        ("build", Phase.BUILD, FILLED, "buildPolicy=smart", Answer.NO),
        ("land", Phase.BUILD, FILLED, "buildPolicy=smart", Answer.YES),
        ("build", Phase.BUILD, EMPTY, "buildPolicy=IF_TAINTED", Answer.NO),
        ("land", Phase.BUILD, FILLED, "outputMode=append", Answer.YES),
        ("build", Phase.VERIFY, FILLED, "", Answer.YES),
        ("build", Phase.TRUNCATE, FILLED, "", Answer.YES),
        ("build", Phase.TRUNCATE, EMPTY, "", Answer.NO),
        ("build", Phase.DESTROY, EMPTY, "", Answer.YES),
        ("build", Phase.DESTROY, MISSING, "", Answer.NO),
    ],
)
def test_dirtiness_follows_from_policy_and_observation(
    workspace: Workspace, *, target: str, phase: Phase, found: Observation, default: str, verdict: Answer
) -> None:
    key, _, value = default.partition("=")
    settings = TargetDefaults.of({f"lakewright.default.target.{key}": value} if key else {})
    dirtiness = Target.named(workspace, target).dirtiness(phase, found, settings)
    assert dirtiness.verdict is verdict
    assert dirtiness.reasons


@pytest.mark.parametrize(
    ("name", "filled", "code"),
    [
        ("strict", Answer.YES, Code.LEAVES_ROWS),
        ("copied_once", Answer.YES, Code.LEAVES_ROWS),
        ("stricter", Answer.YES, Code.FAILS_ON_ROWS),
        ("stricter", Answer.NO, Code.POLICY),
        ("strict", Answer.NO, Code.EMPTY),
    ],
)
def test_the_mode_that_refuses_rows_says_whether_it_is_asked(
    workspace: Workspace, name: str, filled: Answer, code: Code
) -> None:
    """The build policy decides first; the docs said that the build fails."""
    observation = Observation("gold", exists=Answer.YES, filled=filled)
    found = Target.named(workspace, name).build_dirtiness(observation, TargetDefaults())
    assert found.reasons[-1].code is code


def test_changes_that_never_tolerates_are_named_and_clean(workspace: Workspace) -> None:
    left = Observation("x", exists=Answer.YES, changes=(Tolerated("add column b int"),))
    dirtiness = Target.named(workspace, "build").dirtiness(Phase.CREATE, left, TargetDefaults())
    assert dirtiness.verdict is Answer.NO
    assert dirtiness.reasons[1] == Reason(Code.TOLERATED, {"change": "add column b int"})
    missing = Observation("x", exists=Answer.YES, changes=(TableChange("add column b int"),))
    assert Target.named(workspace, "build").dirtiness(Phase.CREATE, missing, TargetDefaults()).is_to_run


def test_an_invalid_default_names_its_key() -> None:
    with pytest.raises(SpecError, match=r"lakewright\.default\.target\.buildPolicy: no build policy 'never'"):
        TargetDefaults.of({"lakewright.default.target.buildPolicy": "never"})


def test_observing_needs_no_spark(workspace: Workspace) -> None:
    found = Target.named(workspace, "build").observe(make_context(workspace))
    assert (found.exists, found.filled, found.error) == (Answer.NO, Answer.NO, None)
    assert found.subject.endswith("/gold[month=2022-01-01]")


def test_a_filled_target_is_built_again_if_its_mode_keeps_rows(workspace: Workspace) -> None:
    filled = Observation("gold", exists=Answer.YES, filled=Answer.YES)
    reasons = {
        name: Target.named(workspace, name).dirtiness(Phase.BUILD, filled, TargetDefaults()).reasons
        for name in ("append", "update", "loose")
    }
    assert reasons == {
        "append": (Reason(Code.ADDS_ROWS, {"mode": "APPEND"}),),
        "update": (Reason(Code.UPDATES_ROWS, {"mode": "UPDATE"}),),
        "loose": (Reason(Code.FILLED),),
    }


def test_a_migration_that_would_lose_data_is_refused_before_unless_it_is_permitted(tmp_path: Path) -> None:
    strict = PROJECT.replace("    location: gold\n", "    location: gold\n    migrationPolicy: STRICT\n")
    workspace = make_workspace(tmp_path, strict)
    month = pa.field("month", pa.date32(), nullable=False)
    schema = pa.schema([pa.field("id", pa.int32()), pa.field("old", pa.int32()), month])
    rows = pa.table({"id": [1], "old": [1], "month": [date(2022, 1, 1)]}, schema=schema)
    write_deltalake(tmp_path / "gold", rows, partition_by=["month"])
    alone = Target.named(workspace, "alone")
    refusal = alone.observe(make_context(workspace)).refusal
    assert refusal is not None
    assert refusal.message == "relation 'gold': its migration would lose column old"
    assert "--allow-data-loss" in str(refusal.remedy)
    permitted = RunOptions(permissions=Permissions(allow_data_loss=True))
    assert alone.observe(make_context(workspace, options=permitted)).refusal is None
