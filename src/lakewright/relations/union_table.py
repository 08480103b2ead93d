"""The `hiveUnionTable` relation: a view over tables of the catalog, one for each incompatible schema."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count
from typing import TYPE_CHECKING, Self

from pydantic import Field as Declared
from pydantic import model_validator

from lakewright.errors import MigrationError
from lakewright.lake.catalog import find_entry, full_name, quoted, refresh_tables, run_statement
from lakewright.lake.partition import Partition, canonical_partition
from lakewright.lake.table import MigrationStep, ensure_database
from lakewright.plan.observation import Answer, Observation, TableChange
from lakewright.plan.resource import Resource
from lakewright.relations.migrated import MigratedRelation
from lakewright.relations.migration import MigrationStrategy, MigrationStrategyText
from lakewright.relations.relation import OutputMode, StoredRelation, WriteSummary
from lakewright.relations.table import TableFormat, TableRelation
from lakewright.schema.sql import name_sql
from lakewright.spec.models.base import TextMap
from lakewright.spec.models.fields import Field
from lakewright.spec.models.places import Address

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakewright.workspace.workspace import Workspace

__all__ = ["UnionTableRelation"]


class UnionTableRelation(MigratedRelation, StoredRelation):
    """A view that unites tables named `prefix_1`, `prefix_2` and so on; the last one is written.

    New columns are added to the last table. A column whose type or nullability doesn't fit begins another
    table, so that no row has to be rewritten; the view shows all rows with the columns that are declared now.
    """

    view_database: str | None = Declared(default=None, description="Database of the view.")
    view: str = Declared(description="Name of the view.")
    table_database: str | None = Declared(default=None, description="Database of the tables.")
    table_prefix: str = Declared(description="Start of the names of the tables.")
    location_prefix: str | None = Declared(
        default=None, description="Start of the locations of the tables; default: chosen by the catalog."
    )
    external: bool = Declared(default=False, description="As for a `hiveTable`.")
    format: TableFormat | None = Declared(default=None, description="Format of the files.")
    options: TextMap = Declared(default_factory=dict, description="Options of the format.")
    properties: TextMap = Declared(default_factory=dict, description="Properties of new tables.")
    migration_strategy: MigrationStrategyText | None = Declared(
        default=None, description="NEVER keeps the tables, FAIL refuses; all others add columns or a table."
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.declared_schema is None:
            raise ValueError("a hiveUnionTable relation needs a `schema`")
        return self

    @property
    def qualified(self) -> str:
        """The name of the view with its database."""
        return full_name(self.view_database, self.view)

    def table(self, number: int) -> TableRelation:
        """Return one of the tables."""
        place = None if self.location_prefix is None else f"{self.location_prefix}_{number}"
        return TableRelation(
            name=self.name,
            kind="hiveTable",
            database=self.table_database,
            table=f"{self.table_prefix}_{number}",
            location=place,
            external=self.external,
            format=self.format,
            options=self.options,
            properties=self.properties,
            partitions=self.partitions,
            declared_schema=self.declared_schema,
            migration_policy=self.migration_policy,
            migration_strategy=MigrationStrategy.ALTER,
        )

    def tables(self, workspace: Workspace) -> list[TableRelation]:
        """Return the tables that exist, in their order."""
        return list(self._existing(workspace))

    def _existing(self, workspace: Workspace) -> Iterator[TableRelation]:
        for number in count(1):
            table = self.table(number)
            if find_entry(workspace.lake, table.qualified()) is None:
                return
            yield table

    def table_sql(self, workspace: Workspace) -> str | None:
        """Return the name of the view in SQL."""
        del workspace
        return quoted(self.qualified)

    def resources(self, workspace: Workspace, partition: Partition | None = None) -> frozenset[Resource]:
        """Return the view, or one of its partitions."""
        del workspace
        values = canonical_partition(self.partitions, partition or {})
        return frozenset({Resource.table(self.qualified, values)})

    def observe(self, workspace: Workspace, partition: Partition | None = None) -> Observation:
        """Return whether view and tables exist, have rows and match the declaration."""
        (subject,) = self.resources(workspace, partition)
        tables = self.tables(workspace)
        if not tables or find_entry(workspace.lake, self.qualified) is None:
            return Observation(str(subject), exists=Answer.NO, filled=Answer.NO)
        filled = any(table.observe(workspace, partition).filled is Answer.YES for table in tables)
        changes = self._changes(workspace, tables[-1])
        refusal = self._refusal(workspace, changes)
        return Observation(
            str(subject),
            exists=Answer.YES,
            filled=Answer.of(filled),
            changes=self.planned(workspace, changes),
            refusal=None if refusal is None else refusal.as_fault(),
        )

    def _refusal(self, workspace: Workspace, changes: Sequence[TableChange]) -> MigrationError | None:
        if not changes or self.strategy(workspace) is not MigrationStrategy.FAIL:
            return None
        return MigrationError(
            f"{self.label}: {self.qualified} differs from its declaration: {changes[0].description}",
            remedy="Set migrationStrategy: ALTER.",
        )

    def _changes(self, workspace: Workspace, last: TableRelation) -> tuple[TableChange, ...]:
        steps = _steps(workspace, last)
        named = "; ".join(step.description for step in steps)
        is_other = any(step.sql is None for step in steps)
        return (TableChange(f"begin another table: {named}" if is_other else named),) if steps else ()

    def read(self, workspace: Workspace, partitions: Sequence[Partition] = ()) -> DataFrame:
        """Return the rows of the view."""
        refresh_tables(workspace.spark, [self.qualified])
        frame = workspace.spark.table(quoted(self.qualified))
        return self.within(frame, partitions)

    def create(self, workspace: Workspace) -> None:
        """Create the first table, and the view."""
        if not self.tables(workspace):
            self.table(1).create(workspace)
        self._create_view(workspace)

    def migrate(self, workspace: Workspace, *, allow_data_loss: bool) -> None:
        """Add columns to the last table, or begin another one, and replace the view.

        Raises:
            MigrationError: The strategy is FAIL.
        """
        tables = self.tables(workspace)
        changes = self._changes(workspace, tables[-1])
        if not changes or self.strategy(workspace) is MigrationStrategy.NEVER:
            return
        if (refusal := self._refusal(workspace, changes)) is not None:
            raise refusal
        if any(step.sql is None for step in _steps(workspace, tables[-1])):
            self.table(len(tables) + 1).create(workspace)
        else:
            tables[-1].migrate(workspace, allow_data_loss=allow_data_loss)
        self._create_view(workspace)

    def _create_view(self, workspace: Workspace) -> None:
        ensure_database(workspace.lake, Address(name=self.qualified))
        queries = [self._query(workspace, table) for table in self.tables(workspace)]
        run_statement(
            workspace.lake,
            f"CREATE OR REPLACE VIEW {quoted(self.qualified)} AS {' UNION ALL '.join(queries)}",
        )

    def _query(self, workspace: Workspace, table: TableRelation) -> str:
        entry = find_entry(workspace.lake, table.qualified())
        present = {field.name.lower() for field in entry.columns} if entry else set()
        columns = ", ".join(_column_sql(field, present) for field in self.declared(workspace) or ())
        return " ".join(("SELECT", columns, "FROM", quoted(table.qualified())))

    def truncate(self, workspace: Workspace, partition: Partition | None = None) -> None:
        """Remove all rows, or those of a partition, from every table."""
        for table in self.tables(workspace):
            table.truncate(workspace, partition)

    def destroy(self, workspace: Workspace) -> None:
        """Remove the view and the tables."""
        if find_entry(workspace.lake, self.qualified) is not None:
            run_statement(workspace.lake, f"DROP VIEW {quoted(self.qualified)}")
        for table in self.tables(workspace):
            table.destroy(workspace)

    def write(
        self, workspace: Workspace, frame: DataFrame, *, partition: Partition, mode: OutputMode
    ) -> WriteSummary:
        """Write the rows to the last table; what they replace is removed from the others.

        `OVERWRITE_DYNAMIC` replaces partitions of the last table only.
        """
        self.create(workspace)
        *others, last = self.tables(workspace)
        summary = last.write(workspace, frame, partition=partition, mode=mode)
        if mode is OutputMode.OVERWRITE:
            for table in others:
                table.truncate(workspace, partition)
        return summary


def _steps(workspace: Workspace, table: TableRelation) -> Sequence[MigrationStep]:
    present = table.present(workspace)
    return () if present is None else present.migration.steps


def _column_sql(field: Field, present: set[str]) -> str:
    name = name_sql(field.name)
    value = name if field.name.lower() in present else "NULL"
    return f"CAST({value} AS {field.type.ddl}) AS {name}"
