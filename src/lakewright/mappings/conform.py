"""The `conform` mapping: renames columns in one style and replaces types."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from pydantic import Field as Declared
from pydantic import field_validator

from lakewright.lake.columns import column, fields_of
from lakewright.mappings.flatten import flattened
from lakewright.mappings.mapping import InputMapping, check_distinct
from lakewright.mappings.naming import Naming, NamingText
from lakewright.schema.types import Array, Chars, Decimal, MapOf, Struct, Type
from lakewright.spec.models.fields import TypeText, parse_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakewright.workspace.workspace import Workspace

__all__ = ["ConformMapping"]


class ConformMapping(InputMapping):
    """Renames columns and struct fields, replaces types and flattens structs, as configured."""

    naming: NamingText | None = Declared(default=None, description="Style of names; default: names are kept.")
    types: dict[str, TypeText] = Declared(
        default_factory=dict,
        description="Types to replace: name of the type, and its replacement. "
        "The run warns of types that no column has.",
    )
    flatten: bool = Declared(default=False, description="Whether struct fields become columns.")

    @field_validator("types")
    @classmethod
    def _known(cls, types: dict[str, Type]) -> dict[str, Type]:
        return {
            _type_name(parse_type(name) if name.lower() != "decimal" else Decimal()): to
            for name, to in types.items()
        }

    def apply(self, frame: DataFrame, workspace: Workspace) -> DataFrame:
        """Return the conformed columns.

        Raises:
            SpecError: Two of them would have the same name.
        """
        if self.flatten:
            frame = flattened(frame, self.naming or Naming.SNAKE_CASE)
        fields = fields_of(frame.schema)
        remedy = "Rename one of them first."
        check_distinct((self._named(field.name) for field in fields), "when renamed", remedy)
        present = {_type_name(found) for field in fields for found in _types_in(field.type)}
        lacks = "its input has no column of the type"
        self.note_absent(workspace, self.types, sorted(present), lacks=lacks, use=" to replace")
        return frame.select(
            *(
                column(field.name).cast(self._conformed(field.type).ddl).alias(self._named(field.name))
                for field in fields
            )
        )

    def _named(self, name: str) -> str:
        return name if self.naming is None else self.naming.rename(name)

    def _conformed(self, found: Type) -> Type:
        if isinstance(found, Array):
            return Array(self._conformed(found.element))
        if isinstance(found, MapOf):
            return MapOf(self._conformed(found.key), self._conformed(found.value))
        if isinstance(found, Struct):
            names = (self._named(field.name) for field in found.fields)
            check_distinct(names, "in a struct when renamed", "Rename one of them first.")
            return Struct(
                tuple(
                    replace(field, name=self._named(field.name), type=self._conformed(field.type))
                    for field in found.fields
                )
            )
        return self.types.get(_type_name(found), found)


def _types_in(found: Type) -> Iterator[Type]:
    """Yield a type that is replaced as a whole: a plain one, or those of the elements and fields inside."""
    if isinstance(found, Array):
        yield from _types_in(found.element)
    elif isinstance(found, MapOf):
        yield from _types_in(found.key)
        yield from _types_in(found.value)
    elif isinstance(found, Struct):
        for field in found.fields:
            yield from _types_in(field.type)
    else:
        yield found


def _type_name(found: Type) -> str:
    if isinstance(found, Decimal):
        return "decimal"
    return "string" if isinstance(found, Chars) else found.ddl
