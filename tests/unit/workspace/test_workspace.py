from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from unittest.mock import MagicMock

import pytest
from tests.projects import make_workspace
from tests.sessions import Started

from lakewright.errors import SpecError, TargetError
from lakewright.lake.lake import Lake
from lakewright.mappings.sources import MockMapping
from lakewright.relations.relation import Relation
from lakewright.spark.conf import SessionSettings
from lakewright.spec.loading.case_setup import set_up_case
from lakewright.spec.models.lake import LakeSettings
from lakewright.workspace.workspace import OF_NO_MAPPING, Workspace

PROJECT = """
relations:
  raw: {kind: file, location: raw/$day}
  gold: {kind: delta, database: gold, table: t}
mappings:
  raw: {kind: relation, relation: raw}
  queried: {kind: sql, sql: "SELECT * FROM raw JOIN gold.t JOIN delta.`/x/y`"}
  named: {kind: sql, file: query.sql}
  circle: {kind: union, inputs: [raw, round]}
  round: {kind: alias, input: $around}
  lost: {kind: alias, input: $nothing}
tests:
  mocked: {overrideMappings: {raw: {kind: mock}}}
"""


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    (tmp_path / "query.sql").write_text("SELECT * FROM queried")
    return make_workspace(tmp_path, PROJECT, day="2022-01-01", nothing="nowhere", around="circle")


@pytest.mark.parametrize("mapping", ["queried", "named"])
def test_what_a_mapping_is_made_of_is_known_without_spark(
    tmp_path: Path, workspace: Workspace, mapping: str
) -> None:
    found = {str(each) for each in workspace.required(mapping)}
    assert found == {f"file:{tmp_path}/raw/2022-01-01", "file:/x/y", "table:gold.t"}


def test_a_circle_is_shown_and_can_be_asked_again(workspace: Workspace) -> None:
    for _ in range(2):
        with pytest.raises(SpecError, match="circle -> round -> circle"):
            workspace.required("circle")


def test_what_is_not_there_is_named_with_what_is_like_it(workspace: Workspace) -> None:
    with pytest.raises(SpecError, match="there is no mapping 'nowhere'"):
        workspace.required("lost")
    with pytest.raises(SpecError, match="did you mean 'raw'"):
        workspace.relation("rawe")
    with pytest.raises(SpecError, match=r"there is no file none\.sql"):
        workspace.read_file("none.sql")


def test_a_definition_is_resolved_once(workspace: Workspace) -> None:
    assert workspace.relation("raw") is workspace.relation("raw")


def test_a_tests_definition_hides_the_projects_own(workspace: Workspace) -> None:
    stage = set_up_case(workspace.project, "mocked")
    overridden = Workspace(stage.project, stage.project.scope, workspace.lake)
    assert isinstance(overridden.mapping("raw"), MockMapping)
    assert overridden.original_mapping("raw") == workspace.mapping("raw")
    assert "raw" not in str(overridden.required("queried"))


def test_a_mock_has_the_partition_columns_of_what_it_mocks(tmp_path: Path) -> None:
    workspace = make_workspace(
        tmp_path,
        """
relations:
  r:
    kind: file
    location: r
    partitions: [{name: day, type: date}]
    schema: {fields: [{name: id, type: int}]}
mappings:
  m: {kind: relation, relation: r, partitions: {day: 2024-05-01}}
tests:
  t: {overrideRelations: {r: {kind: mock}}}
""",
    )
    stage = set_up_case(workspace.project, "t")
    mocked = Workspace(stage.project, stage.project.scope, workspace.lake)
    assert mocked.required("m") == frozenset()
    assert [each.name for each in mocked.relation("r").partitions] == ["day"]


def test_a_tests_definition_takes_the_place_of_an_imported_one(tmp_path: Path) -> None:
    """It does so for all that the imported project makes of it, too, and has its columns and partitions."""
    other = tmp_path / "other"
    other.mkdir()
    (other / "project.yml").write_text("name: other\nmodules: [module.yml]\n")
    (other / "module.yml").write_text(
        """
relations:
  r:
    kind: file
    format: json
    location: r
    partitions: [{name: day, type: date}]
    schema: {fields: [{name: id, type: int}]}
mappings:
  r: {kind: relation, relation: r}
  m: {kind: sql, sql: SELECT id FROM r}
"""
    )
    workspace = make_workspace(
        tmp_path,
        """
mappings:
  all: {kind: sql, sql: SELECT * FROM `other/m`}
tests:
  of_relation: {overrideRelations: {other/r: {kind: mock, records: [[1, 2024-05-01]]}}}
  of_mapping: {overrideMappings: {other/m: {kind: mock, records: [[1]]}}}
""",
        project="imports: [{project: other, location: other}]\n",
    )
    assert workspace.required("all")
    for test in ("of_relation", "of_mapping"):
        stage = set_up_case(workspace.project, test)
        mocked = Workspace(stage.project, stage.project.scope, workspace.lake)
        assert mocked.required("all") == frozenset(), test
    mock = set_up_case(workspace.project, "of_relation").project.imports["other"].relations["r"].raw
    assert mock["partitions"] == [{"name": "day", "type": "date"}]


def test_an_imported_projects_definitions_stand_in_its_own_folder(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "project.yml").write_text("name: other\nmodules: [module.yml]\n")
    (other / "module.yml").write_text(
        """
environment: [where=there]
relations:
  r: {kind: file, location: "${where}", format: json}
mappings:
  r: {kind: relation, relation: r}
  s: {kind: sql, sql: SELECT * FROM r}
"""
    )
    workspace = make_workspace(
        tmp_path,
        """
mappings:
  mine: {kind: alias, input: other/s}
  read: {kind: relation, relation: other/r}
  r: {kind: values, columns: {id: int}, records: [[1]]}
  both: {kind: union, inputs: [r, other/r]}
""",
        project="imports: [{project: other, location: other}]\n",
    )
    for mapping in ("mine", "read"):
        assert [str(each) for each in workspace.required(mapping)] == [f"file:{tmp_path}/other/there"]
    assert workspace.relation("other/r").name == "other/r"
    with pytest.raises(SpecError, match="relation 'other/r' belongs to another project"):
        Relation.named(workspace, "other/r")
    assert sorted(workspace.declarations("mine")) == [
        "mapping 'mine'",
        "mapping 'r' of project other",
        "mapping 's' of project other",
    ]
    assert sorted(workspace.declarations("both")) == [
        "mapping 'both'",
        "mapping 'r'",
        "mapping 'r' of project other",
    ]


def test_entities_of_an_imported_project_are_in_its_own_lake(tmp_path: Path) -> None:
    entity = """
connections: {web: {settings: {silver_path: "${destination}"}}}
entities: {people: {id: 1, connection: web, processtype: full}}
relations: {people: {kind: entity, entity: people}}
mappings: {people: {kind: relation, relation: people}}
"""
    other = tmp_path / "other"
    other.mkdir()
    top = "name: other\nmodules: [m.yml]\nlake: {root_folder: /others, systemfield_prefix: x_}\n"
    (other / "project.yml").write_text(top)
    (other / "m.yml").write_text(entity)
    project = "imports: [{project: other, location: other}]\n"
    workspace = make_workspace(tmp_path, entity, project=project)
    own, others = ([str(each) for each in workspace.required(name)] for name in ("people", "other/people"))
    assert (own, others) == ([f"file:{tmp_path}/lake/silver/people"], ["file:/others/silver/people"])
    with pytest.raises(TargetError, match="no silver table") as caught:
        workspace.frame("other/people")
    assert caught.value.remedy == (
        "The first slice creates it. Once one has arrived, run the job of project "
        f"other in {other} that has the entity's target."
    )


def test_a_lake_starts_its_session_once_and_only_when_asked(tmp_path: Path) -> None:
    started: list[SessionSettings] = []

    class Session:
        is_stopped = False

        def newSession(self) -> Session:  # noqa: N802 - Spark's name
            return Session()

        def stop(self) -> None:
            self.is_stopped = True

    def start(settings: SessionSettings) -> object:
        started.append(settings)
        return Session()

    sessions = Started(start, stops=True)  # type: ignore[arg-type]  # a stand-in
    lake = Lake(LakeSettings(), SessionSettings(tmp_path), sessions=sessions)
    assert not lake.is_started
    first = lake.spark
    assert lake.spark is first
    assert lake.new_session() is not first
    lake.stop()
    assert not lake.is_started
    assert lake.spark is not first
    assert len(started) == 2


def test_threads_that_need_the_session_first_share_one(tmp_path: Path) -> None:
    """E1: each instance has one session of its own, whichever thread asks for it first."""
    made: list[object] = []

    def make() -> MagicMock:
        time.sleep(0.01)
        made.append(session := MagicMock())
        return session

    workspace = make_workspace(
        tmp_path, PROJECT, sessions=Started(lambda _: MagicMock(newSession=MagicMock(side_effect=make)))
    )
    with ThreadPoolExecutor(8) as pool:
        found = {id(each) for each in pool.map(lambda _: workspace.spark, range(8))}
    assert (len(made), len(found)) == (1, 1)


def test_a_note_is_told_with_the_mapping_whose_frame_is_made_whatever_its_output(tmp_path: Path) -> None:
    workspace = make_workspace(
        tmp_path,
        """
mappings:
  source: {kind: values, columns: {id: int}}
  read: {kind: alias, input: "source:main"}
""",
    )
    workspace._use("source:main", lambda _: workspace.note("the header is odd"))
    assert workspace.take_notes("read") == ["the header is odd"]
    workspace.note("read by no mapping")
    assert workspace.take_notes("read") == []
    assert workspace.notes.take([OF_NO_MAPPING]) == ["read by no mapping"]
