"""The relations `table`, in a format other than Delta, and `hiveUnionTable`, a view over several of them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count, takewhile
from typing import TYPE_CHECKING, Annotated, Literal, Self

from pydantic import Field as Declared
from pydantic import model_validator

from lakewright.connections.database import Statements
from lakewright.errors import TargetError
from lakewright.lake.cluster import check_written
from lakewright.lake.columns import conform
from lakewright.lake.files import files_at
from lakewright.lake.partition import (
    Partition,
    canonical_partition,
    check_in_catalog,
    partition_folder,
    with_folder_values,
)
from lakewright.lake.paths import join, local_path
from lakewright.lake.table import (
    CatalogEntry,
    MigrationStep,
    create_table,
    ensure_database,
    find_entry,
    full_name,
    quoted,
    run_statement,
)
from lakewright.plan.observation import Answer
from lakewright.relations.catalog import InCatalog
from lakewright.relations.migration import (
    OF_DELTA,
    MigratedTable,
    MigratedView,
    MigrationPolicyText,
    MigrationStrategy,
    MigrationStrategyText,
    Shape,
    find_steps,
    made_again,
)
from lakewright.relations.relation import (
    OutputMode,
    StoredRelation,
    WriteSummary,
    left_out,
    undeclared_columns,
)
from lakewright.relations.staging import StagedFiles
from lakewright.schema.sql import name_sql
from lakewright.spec.models.base import TextMap, from_text
from lakewright.spec.models.fields import Field
from lakewright.spec.models.places import Address

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakewright.workspace.workspace import Workspace


TableFormat = Annotated[
    Literal["parquet", "orc", "csv", "json", "text", "textfile", "avro"], from_text(str.lower)
]


class TableRelation(InCatalog, MigratedTable):
    """A catalog table in a format other than Delta.

    A write replaces the files by a single rename, so that a query sees the old or the new content. One
    that runs during the rename may fail.
    """

    database: str | None = Declared(default=None, description="Database in the catalog.")
    table: str = Declared(description="Name in the catalog.")
    format: TableFormat | None = Declared(
        default=None, description="Format of the files; default: `parquet`. `textfile` is Hive's text."
    )
    row_format: str | None = Declared(
        default=None, description="Class of a Hive SerDe, whose format the files then have."
    )
    input_format: str | None = Declared(
        default=None, description="Class of a Hive input format, whose format the files then have."
    )
    output_format: str | None = Declared(
        default=None, description="Class of a Hive output format; the input format decides."
    )
    serde_properties: TextMap = Declared(
        default_factory=dict, description="Properties of the SerDe: separators, quotes, the text for null."
    )
    writer: Literal["hive", "spark"] | None = Declared(
        default=None, description="Without effect: Spark writes the files."
    )
    location: str | None = Declared(
        default=None,
        description="Location of the files; default: chosen by the catalog.",
    )
    external: bool = Declared(
        default=False,
        description="Others may use the files too; DESTROY removes them, as in Flowman.",
    )
    options: TextMap = Declared(default_factory=dict, description="Options of the format.")
    properties: TextMap = Declared(
        default_factory=dict, description="Properties of a table that Lakewright creates."
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        for kind, written in (("rowFormat", self.row_format), ("inputFormat", self.input_format)):
            if written is not None and _last(written) not in _BY_CLASS:
                raise ValueError(f"{kind} {written!r} is not supported; known are {', '.join(_BY_CLASS)}")
        if self.output_format is not None and self.row_format is None and self.input_format is None:
            raise ValueError("`outputFormat` needs `inputFormat` or `rowFormat`, by which files are read")
        return self

    @property
    def file_format(self) -> str:
        """Spark's format of the files."""
        if (name := self.row_format or self.input_format) is not None:
            return _BY_CLASS[_last(name)]
        return "csv" if self.format == "textfile" else self.format or "parquet"

    @property
    def file_options(self) -> dict[str, str]:
        """Spark's options for the files, with which it reads and writes them as Hive does."""
        name, form = _last(self.row_format or ""), _last(self.input_format or "")
        is_text = name == "LazySimpleSerDe" or (
            not name and (self.format == "textfile" or form == "TextInputFormat")
        )
        own = {_OPTIONS[key]: text for key, text in self.serde_properties.items() if key in _OPTIONS}
        return {**(_TEXT if is_text else {}), **own, **self.options}

    def check_partition(self, workspace: Workspace, partition: Partition) -> None:
        """Check that the catalog can keep the partition."""
        check_in_catalog(canonical_partition(self.partitions, partition))

    @property
    def qualified(self) -> str:
        """The name with its database."""
        return full_name(self.database, self.table)

    def found(self, workspace: Workspace) -> CatalogEntry | None:
        """Return the table as it is, or None if there is none."""
        return find_entry(workspace.lake, self.qualified)

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
            local = local_path(entry.location)
            place = entry.location if local is None else str(local)
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
        local = local_path(location)
        root = location.rstrip("/") if local is None else str(local)
        return join(root, *(partition_folder({name: text}) for name, text in partition.items()))

    def _staged(self, workspace: Workspace, place: str) -> StagedFiles:
        return StagedFiles(files_at(place, workspace.lake), place, self.file_format, self.file_options)

    def _look_again(self, workspace: Workspace) -> None:
        """Update the catalog's list of partitions."""
        if self.partitions:
            run_statement(workspace.lake, f"MSCK REPAIR TABLE {quoted(self.qualified)} SYNC PARTITIONS")

    def _outgoing(
        self, workspace: Workspace, frame: DataFrame, open_columns: Sequence[str]
    ) -> tuple[list[Field], tuple[Field, ...]]:
        """Return the columns to write, and those of them that are not declared.

        Partition columns without a given value come last.
        """
        present = self.existing(workspace).columns
        divided_by = {each.name.lower() for each in self.partitions}
        fields = self.declared(workspace) or present
        also = undeclared_columns(
            fields, (each for each in present if each.name.lower() not in divided_by), frame
        )
        plain = [field for field in (*fields, *also) if field.name.lower() not in divided_by]
        if also:  # files without names, such as CSV, are read by position
            order = {each.name.lower(): position for position, each in enumerate(present)}
            plain.sort(key=lambda each: order.get(each.name.lower(), len(order)))
        last = (each.as_field() for each in self.partitions if each.name in open_columns)
        return [*plain, *last], also


_OF_CATALOG = Statements(add=OF_DELTA.add, comment=OF_DELTA.comment)
"""The statements of the catalog, which can only add columns and change comments."""


def _nullable(field: Field) -> Field:
    return field.model_copy(update={"nullable": True})


_BY_CLASS = {
    "ParquetHiveSerDe": "parquet",
    "MapredParquetInputFormat": "parquet",
    "OrcSerde": "orc",
    "OrcInputFormat": "orc",
    "AvroSerDe": "avro",
    "AvroContainerInputFormat": "avro",
    "JsonSerDe": "json",
    "OpenCSVSerde": "csv",
    "LazySimpleSerDe": "csv",
    "TextInputFormat": "csv",
}
"""Spark's format by the last part of the class."""

_OPTIONS = {
    "separatorChar": "sep",
    "quoteChar": "quote",
    "escapeChar": "escape",
    "field.delim": "sep",
    "serialization.format": "sep",
    "escape.delim": "escape",
    "serialization.null.format": "nullValue",
}
"""Option of Spark's CSV by the property of a SerDe."""

_TEXT = {"sep": "\x01", "nullValue": "\\N", "quote": "", "escape": "\\"}
"""How Hive writes text by default."""


def _last(name: str) -> str:
    return name.rpartition(".")[2]


_SHARED = (
    *("name", "external", "format", "options", "properties"),
    *("partitions", "declared_schema", "migration_policy"),
)
"""Fields of a union that its tables have too."""


class UnionTableRelation(InCatalog, MigratedView, StoredRelation):
    """A view that unites tables named `prefix_1`, `prefix_2` and so on; the last one is written.

    New columns are added to the last table. A column whose type or nullability doesn't fit begins another
    table; the view shows all rows with the declared columns.
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
        ensure_database(workspace.lake, Address(name=self.qualified))
        queries = [self._query(workspace, table) for table in self.tables(workspace)]
        run_statement(
            workspace.lake,
            f"CREATE OR REPLACE VIEW {quoted(self.qualified)} AS {' UNION ALL '.join(queries)}",
        )

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
        if self.is_there(workspace):
            run_statement(workspace.lake, f"DROP VIEW {quoted(self.qualified)}")
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
