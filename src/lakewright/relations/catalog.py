"""Relations with names or queries in the catalog: `view`, `hiveQuery` and `provided`."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from itertools import count, takewhile
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from pydantic import Field as Declared
from pydantic import model_validator

from lakewright.connections.database import Statements
from lakewright.errors import Fault, SpecError, TargetError
from lakewright.lake.cluster import check_written
from lakewright.lake.columns import conform
from lakewright.lake.delta_log import is_uncommitted
from lakewright.lake.files import files_at
from lakewright.lake.partition import (
    Partition,
    canonical_partition,
    check_in_catalog,
    partition_folder,
    with_folder_values,
)
from lakewright.lake.paths import join, local_path
from lakewright.lake.spark_errors import analysis_error
from lakewright.lake.table import (
    CatalogEntry,
    MigrationStep,
    create_table,
    ensure_database,
    find_entry,
    full_name,
    quoted,
    refresh_tables,
    run_statement,
)
from lakewright.plan.observation import Answer, Observation
from lakewright.plan.resource import Resource
from lakewright.reader.source import WHOLE_TIMES
from lakewright.relations.file_options import HiveTable, TableFormat
from lakewright.relations.migration import (
    OF_DELTA,
    REPLACES_TABLE,
    MigratedTable,
    MigratedView,
    MigrationPolicyText,
    MigrationStrategy,
    MigrationStrategyText,
    Shape,
    Tolerated,
    find_steps,
    made_again,
)
from lakewright.relations.relation import (
    OutputMode,
    Relation,
    StoredRelation,
    WriteSummary,
    left_out,
    undeclared_columns,
)
from lakewright.relations.staging import StagedFiles
from lakewright.schema.sql import name_sql, text_sql
from lakewright.spark.engine import analyzed
from lakewright.spec.models.base import RefersTo, TextMap
from lakewright.spec.models.fields import Field
from lakewright.spec.models.places import Address
from lakewright.spec.models.text_marks import SqlText
from lakewright.workspace.query import QueryText, table_resources

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakewright.workspace.workspace import Workspace


class InCatalog(Relation):
    """A relation that the catalog knows by a name."""

    @property
    @abstractmethod
    def qualified(self) -> str:
        """The name with its database."""

    def table_sql(self, workspace: Workspace) -> str | None:
        """Return the name in SQL."""
        return quoted(self.qualified)

    def resources(self, workspace: Workspace, partition: Partition | None = None) -> frozenset[Resource]:
        """Return the table or view, or one of its partitions."""
        values = canonical_partition(self.partitions, partition or {})
        return frozenset({Resource.table(self.qualified, values)})

    def found(self, workspace: Workspace) -> Any:
        """Return the table or view as it is, or None if there is neither."""
        return find_entry(workspace.lake, self.qualified)

    def is_there(self, workspace: Workspace) -> bool:
        """Return whether the catalog has it."""
        return find_entry(workspace.lake, self.qualified) is not None

    def make_view(self, workspace: Workspace, query: str) -> None:
        """Create a view of its name, in place of one that is there."""
        address = Address(name=self.qualified)
        ensure_database(workspace.lake, address)
        comment = f" COMMENT {text_sql(self.description)}" if self.description else ""
        run_statement(workspace.lake, f"CREATE OR REPLACE VIEW {address.sql}{comment} AS {query}")

    def drop_view(self, workspace: Workspace) -> None:
        """Remove the view of its name; the tables that it reads stay."""
        if self.is_there(workspace):
            run_statement(workspace.lake, f"DROP VIEW IF EXISTS {quoted(self.qualified)}")

    def read(self, workspace: Workspace, partitions: Sequence[Partition] = ()) -> DataFrame:
        """Return the rows of the table or view.

        Raises:
            TargetError: It does not exist.
        """
        # The session may have cached which files the tables of a query had. A program's view may be cached.
        if not self.qualified.lower().startswith("global_temp."):
            refresh_tables(workspace.spark, [self.qualified])
        try:
            frame = analyzed(workspace.spark.table(quoted(self.qualified)))
        except analysis_error() as error:
            if workspace.spark.catalog.tableExists(quoted(self.qualified)):
                raise
            raise TargetError(
                f"{self.label}: there is no {self.qualified} in the catalog",
                remedy="Run the phase that creates it, or correct the name.",
            ) from error
        return self.within(frame, partitions)


class HiveQueryRelation(QueryText, Relation):
    """The rows of a query over tables of the catalog; read-only."""

    def table_sql(self, workspace: Workspace) -> str | None:
        """Return the query in parentheses, which stands for its rows in another query."""
        return f"({self.query(workspace)})"

    def resources(self, workspace: Workspace, partition: Partition | None = None) -> frozenset[Resource]:
        """Return the tables that the query reads."""
        return table_resources(self.query(workspace))

    def read(self, workspace: Workspace, partitions: Sequence[Partition] = ()) -> DataFrame:
        """Return the rows of the query, with the declared columns if there are any."""
        return self.selected(workspace, workspace.spark.sql(self.query(workspace)), partitions)


class ProvidedRelation(InCatalog):
    """Reads a table of the catalog, or a global temporary view, that the project does not manage.

    A Python program gives a project rows with `frame.createOrReplaceGlobalTempView("orders")`, as
    `global_temp.orders`.
    """

    table: str = Declared(description="Name, including its database.")

    @property
    def qualified(self) -> str:
        """The name with its database."""
        return self.table

    def observe(self, workspace: Workspace, partition: Partition | None = None) -> Observation:
        """Return whether the table exists."""
        (subject,) = self.resources(workspace, partition)
        return Observation(str(subject), exists=Answer.of(self.is_there(workspace)))


@dataclass(frozen=True, slots=True)
class WaitingView(Observation):
    """A view that cannot be created, or made anew, before what it reads is there.

    Attributes:
        inputs: The missing resources that it reads.
    """

    inputs: tuple[str, ...] = ()


class ViewRelation(QueryText, InCatalog, MigratedView):
    """A view in the catalog; its rows are computed when it is read.

    A `mapping` is of kind sql, filter, alias or relation, over catalog and Delta tables.
    """

    query_keys: ClassVar[tuple[str, ...]] = ("sql", "file", "mapping")

    # What it reads may have other columns since; the view keeps those that its query had when it was made.
    is_made_anew: ClassVar[bool] = True

    database: str | None = Declared(default=None, description="Database in the catalog.")
    view: str = Declared(description="Name of the view.")
    sql: Annotated[str | None, SqlText.QUERY] = Declared(default=None, description="The query.")
    mapping: Annotated[str | None, RefersTo.MAPPING] = Declared(
        default=None, description="Mapping that defines the query."
    )

    @property
    def qualified(self) -> str:
        """The name with its database."""
        return full_name(self.database, self.view)

    def query(self, workspace: Workspace) -> str:
        """Return the text of the query."""
        return super().query(workspace) if self.mapping is None else workspace.sql_text(self.mapping)

    def computed_from(self, workspace: Workspace) -> frozenset[Resource]:
        """Return the resources that the query reads."""
        if self.mapping is not None:
            return workspace.required(self.mapping)
        return table_resources(self.query(workspace))

    def missing(self, workspace: Workspace) -> tuple[str, ...]:
        """Return the missing resources that the query reads; only resources of the lake are checked."""
        found = sorted(self.requires(workspace), key=str)
        return tuple(each.name for each in found if _is_missing(workspace, each))

    def observe(self, workspace: Workspace, partition: Partition | None = None) -> Observation:
        """Return whether the view exists with the declared query, and which of its inputs are missing."""
        seen = super().observe(workspace, partition)
        is_absent = seen.exists is Answer.NO
        changes = [each for each in seen.changes if not isinstance(each, Tolerated)]
        is_made = is_absent or (changes and seen.refusal is None)
        found = WaitingView(**{each.name: getattr(seen, each.name) for each in fields(seen)})
        refusal = self._query_fault(workspace) if is_absent else seen.refusal
        return replace(found, refusal=refusal, inputs=self.missing(workspace) if is_made else ())

    def _query_fault(self, workspace: Workspace) -> Fault | None:
        """Return why there is no query for the view; None if there is one."""
        try:
            self.query(workspace)
        except SpecError as error:
            return error.as_fault()
        return None

    def steps(self, workspace: Workspace, found: CatalogEntry) -> tuple[MigrationStep, ...]:
        """Return what makes the view the declared one."""
        if found.view_text is None:
            return (REPLACES_TABLE,)
        if _squeezed(found.view_text) != _squeezed(self.query(workspace)):
            return (made_again("replace the view's query"),)
        return (
            () if found.defect is None else (made_again(f"make the view anew: {found.defect.rstrip('.')}"),)
        )

    def create(self, workspace: Workspace) -> None:
        """Create the view, in place of one that is there."""
        self.make_view(workspace, self.query(workspace))

    def destroy(self, workspace: Workspace) -> None:
        """Remove the view; the tables it reads stay."""
        self.drop_view(workspace)


def _squeezed(query: str) -> str:
    return " ".join(query.split()).rstrip(" ;")


def _is_missing(workspace: Workspace, resource: Resource) -> bool:
    if resource.category == "table":
        return find_entry(workspace.lake, resource.name) is None
    path = local_path(resource.name) if resource.category == "file" else None
    if path is None or "*" in resource.name:
        return False
    return not path.exists() or is_uncommitted(path)


class TableRelation(HiveTable, InCatalog, MigratedTable):
    """A catalog table in a format other than Delta.

    A write replaces the files by a single rename; a query that runs meanwhile may fail.
    """

    writer: Literal["hive", "spark"] | None = Declared(
        default=None, description="Without effect: Spark writes the files."
    )
    location: str | None = Declared(
        default=None,
        description="Location of the files; default: chosen by the catalog.",
    )
    external: bool = Declared(
        default=False,
        description="Others may use the files too; DESTROY removes them.",
    )
    properties: TextMap = Declared(
        default_factory=dict, description="Properties of a table that Lakewright creates."
    )

    def check_partition(self, workspace: Workspace, partition: Partition) -> None:
        """Check that the catalog can keep the partition."""
        check_in_catalog(canonical_partition(self.partitions, partition))

    @property
    def qualified(self) -> str:
        """The name with its database."""
        return full_name(self.database, self.table)

    def steps(self, workspace: Workspace, found: CatalogEntry) -> tuple[MigrationStep, ...]:
        """Return what makes the table the declared one."""
        declared = self.declared(workspace)
        if declared is None:
            return ()
        # These formats do not store whether a column is nullable.
        present = Shape(tuple(map(_nullable, found.columns)), found.partition_columns)
        wanted = Shape(tuple(map(_nullable, declared)), tuple(each.name for each in self.partitions))
        return find_steps(present, wanted, self.policy(workspace), _OF_CATALOG)

    def is_filled(self, workspace: Workspace, found: CatalogEntry, partition: Partition) -> bool:
        """Return whether the table, or a partition of it, has rows."""
        return not self.read(workspace, [partition] if partition else []).isEmpty()

    def read(self, workspace: Workspace, partitions: Sequence[Partition] = ()) -> DataFrame:
        """Return the rows of the table, with the declared columns if there are any.

        Raises:
            TargetError: The table does not exist.
        """
        return self.without_undeclared(workspace, super().read(workspace, partitions))

    def create(self, workspace: Workspace, brought: tuple[Field, ...] | None = None) -> None:
        """Create the table; without a declared schema, the first write does so, with its columns."""
        fields = self.declared(workspace) or brought
        if fields is None or self.is_there(workspace):
            return
        create_table(
            workspace.lake,
            Address(name=self.qualified),
            map(_nullable, fields),
            form=self.file_format,
            options=self.file_options,
            partition_columns=[each.name for each in self.partitions],
            place=None if self.location is None else workspace.resolve_location(self.location),
            comment=self.description,
            properties=self.properties,
        )

    def alter(self, workspace: Workspace, steps: Sequence[MigrationStep]) -> None:
        """Add columns and change comments."""
        for step in steps:
            run_statement(workspace.lake, f"ALTER TABLE {quoted(self.qualified)} {step.sql}")

    def truncate(self, workspace: Workspace, partition: Partition | None = None) -> None:
        """Remove all rows, or those of a partition."""
        wanted = canonical_partition(self.partitions, partition or {})
        self._staged(workspace, self._place(workspace, wanted)).empty()
        self._look_again(workspace)

    def destroy(self, workspace: Workspace) -> None:
        """Remove the table with its files, which the catalog keeps if they are at a declared location."""
        entry = find_entry(workspace.lake, self.qualified)
        if entry is None:
            return
        run_statement(workspace.lake, f"DROP TABLE {quoted(self.qualified)}")
        if entry.location is not None and (self.location is not None or self.external):
            place = _place(entry.location)
            files_at(place, workspace.lake).remove(place)

    def write(
        self, workspace: Workspace, frame: DataFrame, *, partition: Partition, mode: OutputMode
    ) -> WriteSummary:
        """Write the rows to a staging folder, then replace the previous files or add to them.

        `OVERWRITE` replaces the partition or the table, `OVERWRITE_DYNAMIC` the partitions of the rows.
        """
        wanted = canonical_partition(self.partitions, partition)
        check_in_catalog(wanted)
        self.create(workspace, self.brought(frame))
        open_columns = self.open_columns(wanted)
        place = self._place(workspace, wanted)
        check_written(workspace.lake, place, self.label)
        staged = self._staged(workspace, place)
        fields, also = self._outgoing(workspace, frame, open_columns)
        outgoing = conform(frame, fields, is_strict=True)
        rows_with_folders = with_folder_values(
            outgoing, [each for each in self.partitions if each.name in open_columns], is_in_catalog=True
        )
        rows = staged.stage(rows_with_folders, open_columns, keeps_empty=False)
        workspace.lake.check_commit()
        staged.put(mode, open_columns)
        self._look_again(workspace)
        divided_by = [each.name for each in self.partitions]
        undeclared = tuple(each.name for each in also)
        return WriteSummary(rows, left_out=left_out(frame, fields, divided_by), undeclared=undeclared)

    def open_columns(self, partition: Partition) -> list[str]:
        """Return the partition columns after those of the partition, whose values the rows bring."""
        return self.columns_after(partition)

    def _place(self, workspace: Workspace, partition: Partition) -> str:
        location = self.existing(workspace).location
        if location is None:
            raise TargetError(f"{self.label}: {self.qualified} is a view", remedy="Name a table.")
        return join(_place(location), *(partition_folder({name: text}) for name, text in partition.items()))

    def _staged(self, workspace: Workspace, place: str) -> StagedFiles:
        times = WHOLE_TIMES if self.file_format in ("csv", "json") else {}
        options = {**times, **self.file_options}
        return StagedFiles(files_at(place, workspace.lake), place, self.file_format, options)

    def _look_again(self, workspace: Workspace) -> None:
        """Update the catalog's list of partitions."""
        if self.partitions:
            run_statement(workspace.lake, f"MSCK REPAIR TABLE {quoted(self.qualified)} SYNC PARTITIONS")

    def _outgoing(
        self, workspace: Workspace, frame: DataFrame, open_columns: Sequence[str]
    ) -> tuple[list[Field], tuple[Field, ...]]:
        """Return the columns to write, and those of them that are not declared.

        They are in the order of the table, as files without names, such as CSV, are read by position.
        Partition columns without a given value come last.
        """
        divided_by = {each.name.lower() for each in self.partitions}
        present = [each for each in self.existing(workspace).columns if each.name.lower() not in divided_by]
        order = {each.name.lower(): position for position, each in enumerate(present)}
        fields = [each for each in self.declared(workspace) or () if each.name.lower() not in divided_by]
        also = undeclared_columns(fields or present, present, frame)
        plain = sorted(
            (*(fields or present), *also), key=lambda each: order.get(each.name.lower(), len(order))
        )
        last = (each.as_field() for each in self.partitions if each.name in open_columns)
        return [*plain, *last], also


def _place(location: str) -> str:
    """Return the location of a table as a local path, or as a URI."""
    local = local_path(location)
    return location.rstrip("/") if local is None else str(local)


_OF_CATALOG = Statements(add=OF_DELTA.add, comment=OF_DELTA.comment)
"""The statements of the catalog, which can only add columns and change comments."""


def _nullable(field: Field) -> Field:
    return field.model_copy(update={"nullable": True})


_SHARED = (
    *("name", "external", "format", "options", "properties"),
    *("partitions", "declared_schema", "migration_policy"),
)
"""Fields of a union that its tables have too."""


class UnionTableRelation(InCatalog, MigratedView, StoredRelation):
    """A view that unites tables named `prefix_1`, `prefix_2` and so on; the last one is written.

    New columns are added to the last table. A column whose type or nullability doesn't fit begins another
    table.
    """

    view_database: str | None = Declared(default=None, description="Database of the view.")
    view: str = Declared(description="Name of the view.")
    table_database: str | None = Declared(default=None, description="Database of the tables.")
    table_prefix: str = Declared(description="Start of the names of the tables.")
    location_prefix: str | None = Declared(
        default=None, description="Start of the tables' locations; default: chosen by the catalog."
    )
    external: bool = Declared(default=False, description="As for a `hiveTable`.")
    format: TableFormat | None = Declared(default=None, description="Format of the files.")
    options: TextMap = Declared(default_factory=dict, description="Options of the format.")
    properties: TextMap = Declared(default_factory=dict, description="Properties of new tables.")
    migration_policy: MigrationPolicyText | None = Declared(
        default=None, description="Differences that require a migration."
    )
    migration_strategy: MigrationStrategyText | None = Declared(
        default=None, description="NEVER keeps the tables, FAIL refuses, others add columns or a table."
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
        return TableRelation(
            kind="hiveTable",
            database=self.table_database,
            table=f"{self.table_prefix}_{number}",
            location=None if self.location_prefix is None else f"{self.location_prefix}_{number}",
            migration_strategy=MigrationStrategy.ALTER,
            **{name: getattr(self, name) for name in _SHARED},
        )

    def tables(self, workspace: Workspace) -> list[TableRelation]:
        """Return the tables that exist, in their order."""
        return list(takewhile(lambda each: each.is_there(workspace), map(self.table, count(1))))

    def found(self, workspace: Workspace) -> list[TableRelation] | None:
        """Return the tables; None if there is none, or no view."""
        tables = self.tables(workspace)
        return tables if tables and self.is_there(workspace) else None

    def steps(self, workspace: Workspace, found: Sequence[TableRelation]) -> tuple[MigrationStep, ...]:
        """Return what the last table lacks, as one step."""
        steps = _steps(workspace, found[-1])
        named = "; ".join(step.description for step in steps)
        is_other = any(step.sql is None for step in steps)
        return (made_again(f"begin another table: {named}" if is_other else named),) if steps else ()

    def is_filled(self, workspace: Workspace, found: Sequence[TableRelation], partition: Partition) -> bool:
        """Return whether one of the tables, or a partition of it, has rows."""
        return any(each.observe(workspace, partition).filled is Answer.YES for each in found)

    def create(self, workspace: Workspace) -> None:
        """Create the first table, or bring the last one to the declaration, and create the view.

        A table that cannot be altered stays as it is, and another one follows it.
        """
        tables = self.tables(workspace)
        is_kept = self.strategy(workspace) in (MigrationStrategy.NEVER, MigrationStrategy.FAIL)
        steps = () if is_kept or not tables else _steps(workspace, tables[-1])
        if not tables or any(step.sql is None for step in steps):
            self.table(len(tables) + 1).create(workspace)
        elif steps:
            tables[-1].alter(workspace, steps)
        queries = (self._query(workspace, table) for table in self.tables(workspace))
        self.make_view(workspace, " UNION ALL ".join(queries))

    def _query(self, workspace: Workspace, table: TableRelation) -> str:
        entry = find_entry(workspace.lake, table.qualified)
        present = {field.name.lower() for field in entry.columns} if entry else set()
        columns = ", ".join(_column_sql(field, present) for field in self.declared(workspace) or ())
        return " ".join(("SELECT", columns, "FROM", quoted(table.qualified)))

    def truncate(self, workspace: Workspace, partition: Partition | None = None) -> None:
        """Remove all rows, or those of a partition, from every table."""
        for table in self.tables(workspace):
            table.truncate(workspace, partition)

    def destroy(self, workspace: Workspace) -> None:
        """Remove the view and the tables."""
        self.drop_view(workspace)
        for table in self.tables(workspace):
            table.destroy(workspace)

    def write(
        self, workspace: Workspace, frame: DataFrame, *, partition: Partition, mode: OutputMode
    ) -> WriteSummary:
        """Write the rows to the last table; what they replace is removed from the others.

        `OVERWRITE_DYNAMIC` replaces partitions of the last table only.
        """
        if self.found(workspace) is None:
            self.create(workspace)
        *others, last = self.tables(workspace)
        summary = last.write(workspace, frame, partition=partition, mode=mode)
        if mode is OutputMode.OVERWRITE:
            for table in others:
                table.truncate(workspace, partition)
        return summary


def _steps(workspace: Workspace, table: TableRelation) -> Sequence[MigrationStep]:
    found = table.found(workspace)
    return () if found is None else table.steps(workspace, found)


def _column_sql(field: Field, present: set[str]) -> str:
    name = name_sql(field.name)
    value = name if field.name.lower() in present else "NULL"
    return f"CAST({value} AS {field.type.ddl}) AS {name}"
