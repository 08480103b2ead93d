"""`plan` says that CREATE of a view will fail if its query names a column that its table does not have."""

from __future__ import annotations

from pathlib import Path

import pyarrow  # type: ignore[import-untyped]
import pytest
from deltalake import write_deltalake
from tests.projects import make_workspace

from lakewright.plan.phase import Phase
from lakewright.plan.resource import Resource
from lakewright.run.plan_warnings import UNKNOWN_COLUMN, unknown_column
from lakewright.targets.target import Target

PROJECT = """
relations:
  sales: {{kind: delta, location: sales, schema: {{fields: [{{name: id, type: long}}]}}, SETTINGS}}
  view: {{kind: view, view: v, sql: "SELECT id, note, NOTE FROM delta.`{folder}/sales`"}}
targets:
  sales: {{kind: relation, relation: sales}}
  view: {{kind: relation, relation: view}}
"""
MESSAGE = "CREATE will fail: relation 'view': no table of its query has the column 'note'"


def told(folder: Path, settings: str = "description: x", *, is_created: bool = True) -> str | None:
    workspace = make_workspace(folder, PROJECT.format(folder=folder).replace("SETTINGS", settings))
    table = Resource.file(str(folder / "sales"))
    found = unknown_column(
        Target.named(workspace, "view"),
        workspace,
        Phase.CREATE,
        lambda resource: is_created and resource.intersects(table),
    )
    assert found is None or found.code == UNKNOWN_COLUMN
    return None if found is None else found.message


def write(folder: Path, *names: str) -> None:
    write_deltalake(folder / "sales", pyarrow.table({name: [1] for name in names}))


def test_a_view_names_a_column_that_its_new_table_will_not_have(tmp_path: Path) -> None:
    assert told(tmp_path) == MESSAGE
    assert told(tmp_path, is_created=False) is None  # it waits


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ("migrationPolicy: STRICT", MESSAGE),
        ("migrationStrategy: REPLACE", None),
        ("migrationPolicy: STRICT, migrationStrategy: REPLACE", MESSAGE),
        ("migrationPolicy: STRICT, migrationStrategy: NEVER", None),
        ("migrationPolicy: STRICT, migrationStrategy: FAIL", None),
        ("migrationPolicy: RELAXED", None),
    ],
)
def test_a_migration_decides_whether_the_column_is_there_afterwards(
    tmp_path: Path, settings: str, message: str | None
) -> None:
    write(tmp_path, "id", "note")
    assert told(tmp_path, settings) == message
    assert told(tmp_path, settings, is_created=False) is None


def test_a_table_that_no_step_changes_has_its_columns_of_today(tmp_path: Path) -> None:
    write(tmp_path, "id")
    assert told(tmp_path, is_created=False) == MESSAGE


def test_a_renamed_column_is_there_by_its_new_name_only(tmp_path: Path) -> None:
    write(tmp_path, "id", "note")
    renaming = "fields: [{name: id, type: long}, {name: remark, type: long, renamedFrom: note}]"
    text = PROJECT.replace(
        "fields: [{{name: id, type: long}}]", renaming.replace("{", "{{").replace("}", "}}")
    )
    workspace = make_workspace(tmp_path, text.format(folder=tmp_path).replace("SETTINGS", "description: x"))
    found = unknown_column(Target.named(workspace, "view"), workspace, Phase.CREATE, lambda _: True)
    assert found is not None
    assert found.message == MESSAGE


def test_only_views_are_looked_at(tmp_path: Path) -> None:
    workspace = make_workspace(
        tmp_path, PROJECT.format(folder=tmp_path).replace("SETTINGS", "description: x")
    )
    assert unknown_column(Target.named(workspace, "sales"), workspace, Phase.CREATE, lambda _: True) is None
