"""The `values` dataset: rows that the project declares."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import Field as Declared

from lakewright.relations.values import ValuesRelation
from lakewright.schemas.schema import Schema
from lakewright.spec.models.base import KindOf, Rows
from lakewright.spec.models.fields import TypeText
from lakewright.targets.datasets.dataset import RelationLike

if TYPE_CHECKING:
    from lakewright.workspace.workspace import Workspace

__all__ = ["ValuesDataset"]


class ValuesDataset(RelationLike):
    """Returns the declared records, with the columns of `columns` or of `schema`."""

    records: Rows = Declared(
        default_factory=list, description="Rows: lists of values, or maps of column to value."
    )
    columns: dict[str, TypeText] | None = Declared(default=None, description="Columns with their types.")
    declared_schema: Annotated[Schema, KindOf("schema", default="inline")] | None = Declared(
        default=None, alias="schema", description="Columns, instead of `columns`."
    )

    def source(self, workspace: Workspace) -> ValuesRelation:
        """Return the records as a relation."""
        return ValuesRelation(
            kind="values", records=self.records, columns=self.columns, declared_schema=self.declared_schema
        )
