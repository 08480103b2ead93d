"""The `union` schema: the columns of several schemas, merged."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

from pydantic import Field as Declared

from lakewright.errors import SpecError
from lakewright.schema.fits import fits
from lakewright.schema.shape import plain_type
from lakewright.schemas.schema import Schema
from lakewright.spec.models.base import KindOf, Listed, Reference
from lakewright.spec.models.fields import Field

if TYPE_CHECKING:
    from lakewright.workspace.workspace import Workspace

__all__ = ["UnionSchema"]


class UnionSchema(Schema):
    """The columns are those of all schemas, each once with the widest of its types.

    A column that some of the schemas lack may be null.
    """

    schemas: Listed[Annotated[Schema, KindOf("schema", default="inline")]] = Declared(
        min_length=1, description="The schemas; their columns are in this order."
    )

    def references(self) -> Iterable[Reference]:
        """Return the references of the schemas."""
        return [
            each
            for index, schema in enumerate(self.schemas)
            for each in schema.references_below("schemas", index)
        ]

    def fields(self, workspace: Workspace) -> tuple[Field, ...]:
        """Return the merged columns.

        Raises:
            SpecError: A column has types of which none can hold the values of all the others.
        """
        all_fields = [schema.fields(workspace) for schema in self.schemas]
        merged: dict[str, Field] = {}
        for fields in all_fields:
            for field in fields:
                key = field.name.lower()
                merged[key] = _wider(merged[key], field) if key in merged else field
        everywhere = set.intersection(*({field.name.lower() for field in fields} for fields in all_fields))
        return tuple(
            field if key in everywhere else field.model_copy(update={"nullable": True})
            for key, field in merged.items()
        )

    def mappings(self) -> tuple[str, ...]:
        """Return the names of the mappings that columns are taken from."""
        return tuple(name for schema in self.schemas for name in schema.mappings())


def _wider(one: Field, other: Field) -> Field:
    nullable = one.nullable or other.nullable
    if fits(other.type, one.type):
        return one.model_copy(update={"nullable": nullable})
    if fits(one.type, other.type):
        return one.model_copy(update={"nullable": nullable, "type": plain_type(other.type)})
    raise SpecError.of(
        f"column {one.name} is of type {one.type.ddl} in one schema and {other.type.ddl} in another",
        remedy="Declare the same type for it in both.",
    )
