"""The plan of a table that an entity adopts, without Spark.

`lifecycles-and-phases.md`, "Phases" (CREATE).
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

from deltalake import write_deltalake
from tests.contexts import make_context
from tests.projects import make_workspace

from lakewright.plan.phase import Phase
from lakewright.targets.target import Target

pa: Any = import_module("pyarrow")
pq: Any = import_module("pyarrow.parquet")

PROJECT = """
connections:
  crm: {{settings: {{bronze_path: "${{entity}}", silver_path: "${{entity}}"}}}}
entities:
  customers:
    id: 1
    connection: crm
    processtype: merge
    columns: [{{name: id, fieldroles: [businesskey]}}]
    settings:
      adopt: {adopt}
targets:
  customers: {{kind: entity, entity: customers}}
"""


def changes(folder: Path, adopt: str, *, slices: tuple[str, ...] = ("s1",)) -> list[str] | str:
    bronze = folder / "lake/bronze/customers"
    bronze.mkdir(parents=True)
    for name in slices:
        pq.write_table(pa.table({"id": [1]}), bronze / name)
    table = pa.table({"id": [1, 2], "gone": [False, True], "by": ["me", "me"]})
    write_deltalake(str(folder / "lake/silver/customers"), table)
    workspace = make_workspace(folder, PROJECT.format(adopt=adopt))
    target, context = Target.named(workspace, "customers"), make_context(workspace)
    found = target.observe(context)
    assert target.dirtiness(Phase.CREATE, found, context.defaults).is_to_run is bool(found.changes)
    return [change.description for change in found.changes]


def test_create_shows_what_adopting_changes(tmp_path: Path) -> None:
    assert changes(tmp_path, "{deleted: gone, drop: by}") == [
        "adopt the table of at most 2 rows: each row gets its key and hash, all in one commit",
        "rename column gone to dlf_deleted",
        "add column dlf_SourceHash",
        "add column PK_customers",
        "add column dlf_lastSeen",
        "drop column by",
    ]


def test_adoption_waits_for_the_first_slice(tmp_path: Path) -> None:
    assert changes(tmp_path, "true", slices=()) == []


def test_a_table_is_adopted_only_if_the_entity_says_so(tmp_path: Path) -> None:
    assert changes(tmp_path, "false") == []
