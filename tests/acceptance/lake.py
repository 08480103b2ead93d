"""A small lake for tests of whole commands: one entity of each strategy over Parquet slices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import pandas as pd
from deltalake import DeltaTable
from tests.acceptance.command import Lakewright
from tests.commands import InProcess
from tests.silver import rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


PROJECT = """
name: small
modules: [model]
lake:
  root_folder: ${project.basedir}/lake
"""

MODEL = """
connections:
  source:
    settings: {bronze_path: "${destination}", silver_path: "${destination}"}
entities:
  customers:
    id: 1
    connection: source
    processtype: merge
    columns: [{name: id, fieldroles: [businesskey]}]
  prices:
    id: 2
    connection: source
    processtype: historic
    columns: [{name: id, fieldroles: [businesskey]}]
  countries:
    id: 3
    connection: source
    processtype: full
relations:
  current_customers: {kind: entity, entity: customers, current: true}
  names:
    kind: delta
    location: ${project.basedir}/lake/gold/names
mappings:
  current_customers: {kind: relation, relation: current_customers}
  names: {kind: sql, sql: "SELECT name, count(*) AS customers FROM current_customers GROUP BY name"}
targets:
  customers: {kind: entity, entity: customers}
  prices: {kind: entity, entity: prices}
  countries: {kind: entity, entity: countries}
  names: {kind: relation, mapping: names, relation: names}
jobs:
  daily:
    parameters: [{name: day, type: date, default: "2022-01-01"}]
    targets: [customers, prices, countries, names]
"""


class SmallLake(InProcess):
    """A project in a folder, with its command, which runs in this process unless `process` is asked to."""

    @classmethod
    def make(cls, folder: Path, session: SparkSession | None = None) -> Self:
        """Return the project, written into a new folder, without any slice.

        Commands run on a session; without one, a command that needs Spark fails.
        """
        (folder / "model").mkdir(parents=True)
        (folder / "project.yml").write_text(PROJECT)
        (folder / "model" / "model.yml").write_text(MODEL)
        return cls(folder, session)

    @property
    def process(self) -> Lakewright:
        """The command as a user starts it, in a process of its own."""
        return Lakewright(self.folder)

    def slice(self, entity: str, name: str, rows: Sequence[Mapping[str, Any]]) -> Path:
        """Return the path of a slice that was put into bronze."""
        path = self.folder / "lake" / "bronze" / entity / f"{name}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        pd.DataFrame(list(rows)).to_parquet(path, index=False)
        return path

    def silver(self, entity: str) -> list[dict[str, Any]]:
        """Return the rows of an entity's silver table; none where it doesn't exist."""
        return rows_of(self.folder / "lake" / "silver" / entity)

    def version(self, entity: str) -> int:
        """Return the version of an entity's silver table."""
        return DeltaTable(self.folder / "lake" / "silver" / entity).version()

    def state(self) -> dict[str, bytes]:
        """Return the content of every file of the lake, for comparison."""
        lake = self.folder / "lake"
        return {str(path): path.read_bytes() for path in sorted(lake.rglob("*")) if path.is_file()}
