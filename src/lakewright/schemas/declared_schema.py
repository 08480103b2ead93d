"""Schemas of columns that are declared in place, or taken from mappings, relations and other schemas."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import Field as Declared

from lakewright.errors import SpecError
from lakewright.schema.fits import fits
from lakewright.schema.shape import plain_type
from lakewright.schemas.schema import Schema
from lakewright.spec.models.base import KindOf, Listed, RefersTo, Texts
from lakewright.spec.models.fields import Field

if TYPE_CHECKING:
    from lakewright.workspace.workspace import Workspace


class InlineSchema(Schema):
    """The columns are those of `fields`."""

    declared_fields: Listed[Field] = Declared(alias="fields", description="The columns, in order.")
    declared_key: Texts = Declared(
        default=(), alias="primaryKey", description="Columns that together identify a row."
    )

    def fields(self, workspace: Workspace) -> tuple[Field, ...]:
        """Return the declared columns."""
        return self.declared_fields

    def primary_key(self) -> tuple[str, ...]:
        """Return the declared key."""
        return self.declared_key


class MappingSchema(Schema):
    """The columns are those of a mapping's frame, for which Spark is started."""

    mapping: Annotated[str, RefersTo.MAPPING] = Declared(description="Name of the mapping.")

    def fields(self, workspace: Workspace) -> tuple[Field, ...]:
        """Return the columns of the mapping's frame."""
        return workspace.fields(self.mapping)

    def mappings(self) -> tuple[str, ...]:
        """Return the mapping."""
        return (self.mapping,)


class RelationSchema(Schema):
    """The columns are those of a relation: those it declares, otherwise those it has."""

    relation: Annotated[str, RefersTo.RELATION] = Declared(description="Name of the relation.")

    def fields(self, workspace: Workspace) -> tuple[Field, ...]:
        """Return the columns of the relation."""
        return workspace.relation(self.relation).fields(workspace)


class UnionSchema(Schema):
    """The columns are those of all schemas, each once with the widest of its types.

    A column that some of the schemas lack may be null.
    """

    schemas: Annotated[Listed[Annotated[Schema, KindOf("schema", default="inline")]], RefersTo.INSIDE] = (
        Declared(min_length=1, description="The schemas; their columns are in this order.")
    )

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
