"""Mappings that read relations, tables without one, and rows that the project declares."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import Field as Declared

from lakewright.errors import Fault, SpecError, TargetError
from lakewright.lake.columns import conform, fields_of, frame_of_records
from lakewright.lake.partition import Selection, expand_selection
from lakewright.lake.table import full_name, quoted, refresh_tables
from lakewright.mappings.mapping import Input, Mapping
from lakewright.plan.resource import Resource
from lakewright.schemas.schema import DeclaredColumns
from lakewright.spec.models.base import RefersTo, Rows
from lakewright.spec.models.fields import Field, TypeText
from lakewright.spec.models.records import without_others
from lakewright.workspace.query import all_rows
from lakewright.workspace.readable_parts import (
    ReadableRelation,
    RelationReference,
    check_partition_values,
    read_relation,
)
from lakewright.workspace.sql_check import ColumnsOf

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakewright.workspace.workspace import Workspace


class RelationMapping(Mapping):
    """Reads a relation, or some of its partitions."""

    deferred: ClassVar[frozenset[str]] = frozenset({"relation.pattern"})

    relation: RelationReference = Declared(description="The relation, or its name.")
    partitions: Selection = Declared(
        default_factory=dict, description="Values, lists or ranges of partition columns."
    )
    columns: dict[str, TypeText] | None = Declared(
        default=None,
        description="Columns of the result; default: all. Those that the relation lacks are null, with a "
        "warning.",
    )

    def source(self, workspace: Workspace) -> ReadableRelation:
        """Return the relation."""
        return workspace.relation(self.relation) if isinstance(self.relation, str) else self.relation

    def requires(self, workspace: Workspace) -> frozenset[Resource]:
        """Return the partitions that are read, or the whole relation."""
        source = self.source(workspace)
        partitions = self.selected(workspace)
        return frozenset().union(*(source.resources(workspace, each) for each in partitions or [{}]))

    def selected(self, workspace: Workspace) -> tuple[dict[str, str], ...]:
        """Return the partitions to read; empty for all."""
        source, definition = self.source(workspace), workspace.project.definitions("mapping").get(self.name)
        check_partition_values(workspace, definition, source, self.partitions, ("partitions",))
        return expand_selection(source.partitions, self.partitions)

    def declared_columns(self, workspace: Workspace, columns_of: ColumnsOf) -> Sequence[str] | None:
        """Return the columns, if they are declared here or by the relation."""
        if self.columns is not None:
            return tuple(self.columns)
        declare = getattr(self.source(workspace), "declared", None)
        fields = None if declare is None else declare(workspace)
        return None if fields is None else tuple(each.name for each in fields)

    def transform(self, workspace: Workspace) -> DataFrame:
        """Return the rows, restricted to the declared columns if there are any."""
        frame = self._rows(self.source(workspace), workspace)
        if self.columns is None:
            return frame
        self.note_absent(
            workspace,
            self.columns,
            frame.columns,
            lacks=f"relation {(self.source(workspace).name or self.name)!r} has no column",
            use=", so null is read",
        )
        return conform(frame, [Field(name=name, type=found) for name, found in self.columns.items()])

    def _rows(self, source: ReadableRelation, workspace: Workspace) -> DataFrame:
        if workspace.is_outline:
            return frame_of_records(workspace.spark, source.fields(workspace), [])
        return read_relation(source, workspace, self.selected(workspace))

    def plain_sql(self, workspace: Workspace) -> str:
        """Return a query for the whole relation.

        Raises:
            SpecError: Only part of it is read, or a query cannot name it as a table.
        """
        source = self.source(workspace)
        table = source.table_sql(workspace)
        if table is None:
            message = (
                f"{self.label} of project {workspace.project.name!r} cannot be used in a view: it reads the "
                f"relation {source.name!r} of kind {source.kind!r}, which is no table that a view could name"
            )
            remedy = (
                "Write its rows to a relation of kind delta or table with a target, and let the view read "
                "that one."
            )
            raise SpecError([Fault(message, remedy=remedy, subject=self.label)])
        if self.partitions or self.columns:
            named = "partitions" if self.partitions else "columns"
            message = f"{self.label} cannot be used in a view, because it has `{named}`"
            remedy = "Leave them out, and select what is needed in a mapping of kind sql or filter."
            raise SpecError([Fault(message, remedy=remedy, subject=self.label)])
        return all_rows(table)


class ProvidedMapping(Mapping):
    """Returns the rows of a table or global view of the catalog that the project doesn't declare."""

    table: str = Declared(description="Name of the table, such as `shop.items` or `global_temp.items`.")
    database: str | None = Declared(default=None, description="Database of the table.")
    columns: dict[str, TypeText] | None = Declared(
        default=None, description="Columns of the result; default: all."
    )

    def qualified(self) -> str:
        """Return the name of the table with its database."""
        return full_name(self.database, self.table)

    def requires(self, workspace: Workspace) -> frozenset[Resource]:
        """Return the table."""
        return frozenset({Resource.table(self.qualified())})

    def plain_sql(self, workspace: Workspace) -> str:
        """Return a query for all rows of the table.

        Raises:
            SpecError: Only some of its columns are read.
        """
        return all_rows(quoted(self.qualified())) if self.columns is None else super().plain_sql(workspace)

    def transform(self, workspace: Workspace) -> DataFrame:
        """Return the rows, with the declared columns if there are any."""
        refresh_tables(workspace.spark, [self.qualified()])
        frame = workspace.spark.table(quoted(self.qualified()))
        if self.columns is None:
            return frame
        return conform(frame, [Field(name=name, type=found) for name, found in self.columns.items()])


class LiteralMapping(DeclaredColumns, Mapping):
    """A mapping with declared columns."""

    def declared_columns(self, workspace: Workspace, columns_of: ColumnsOf) -> Sequence[str] | None:
        """Return the declared columns."""
        return tuple(each.name for each in self.fields(workspace))


class EmptyMapping(LiteralMapping):
    """Returns no rows, with the declared columns."""

    def transform(self, workspace: Workspace) -> DataFrame:
        """Return a frame without rows."""
        return frame_of_records(workspace.spark, self.fields(workspace), [])


class ValuesMapping(LiteralMapping):
    """Returns its records with the columns of `columns` or `schema`.

    A value that does not fit its type is an error.
    """

    records: Rows = Declared(
        default_factory=list, description="Rows: lists of values, or maps of column to value."
    )

    def transform(self, workspace: Workspace) -> DataFrame:
        """Return the records."""
        return frame_of_records(workspace.spark, self.fields(workspace), self.records)


class MockMapping(Mapping):
    """Replaces another mapping in a test and has its columns.

    Without `mapping`, it mocks the mapping with its own name that the test overrides.
    """

    mapping: Annotated[Input | None, RefersTo.MAPPING] = Declared(
        default=None, description="Mapping whose columns it has."
    )
    records: Rows = Declared(
        default_factory=list, description="Rows: lists of values, or maps of column to value."
    )

    def inputs(self, workspace: Workspace) -> tuple[str, ...]:
        """Return nothing, because only the columns of the mocked mapping are used."""
        return ()

    def transform(self, workspace: Workspace) -> DataFrame:
        """Return the records with the columns of the mocked mapping."""
        mocked = workspace.original_mapping(self.mapping or self.name)
        if mocked is self:
            raise SpecError.of("it mocks itself", remedy="Name the mapping to mock.", subject=self.label)
        try:
            fields = fields_of(mocked.build(workspace.outline()).schema)
        except TargetError as error:
            raise SpecError.of(
                f"the columns of what it mocks are only known from data: {error.message}",
                remedy="Mock it by kind `values`, whose `columns` are those that the test uses.",
                subject=self.label,
            ) from error
        records, dropped = without_others(fields, self.records)
        for text in dropped:
            workspace.note(f"{self.label}: {text}")
        return frame_of_records(workspace.spark, fields, records)
