"""Mappings whose rows the project declares."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from pydantic import Field as Declared

from lakewright.errors import SpecError, TargetError
from lakewright.lake.columns import fields_of, frame_of_records
from lakewright.mappings.mapping import Input, Mapping
from lakewright.schemas.schema import DeclaredColumns
from lakewright.spec.models.base import Reference, Rows
from lakewright.spec.models.records import without_others
from lakewright.workspace.sql_check import ColumnsOf

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakewright.workspace.workspace import Workspace


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

    A value that does not fit its type is an error: 1.5 is no `int`, and a `date` has no time.
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

    mapping: Input | None = Declared(default=None, description="Mapping whose columns it has.")
    records: Rows = Declared(
        default_factory=list, description="Rows: lists of values, or maps of column to value."
    )

    def references(self) -> Iterable[Reference]:
        """Return the mocked mapping."""
        return [] if self.mapping is None else [Reference("mapping", self.mapping, ("mapping",))]

    def inputs(self, workspace: Workspace) -> tuple[str, ...]:
        """Return nothing, because only the columns of the mocked mapping are used."""
        return ()

    def transform(self, workspace: Workspace) -> DataFrame:
        """Return the records with the columns of the mocked mapping."""
        mocked = workspace.original_mapping(self.mapping or self.name)
        if mocked is self:
            raise SpecError.of(f"mapping {self.name!r} mocks itself", remedy="Name the mapping to mock.")
        label = f"mapping {self.name!r}"
        try:
            fields = fields_of(mocked.build(workspace.outline()).schema)
        except TargetError as error:
            raise SpecError.of(
                f"{label}: the columns of what it mocks are only known from data: {error.message}",
                remedy="Mock it by kind `values`, whose `columns` are those that the test uses.",
            ) from error
        records, dropped = without_others(fields, self.records)
        for text in dropped:
            workspace.note(f"{label}: {text}")
        return frame_of_records(workspace.spark, fields, records)
