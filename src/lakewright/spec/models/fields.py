"""Fields of declared schemas, partition columns, and the forms in which projects write a field's type.

Source: the project files' rules, fields and data types: Flowman's names and shapes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field as Declared
from pydantic import GetJsonSchemaHandler, PlainSerializer, PlainValidator
from pydantic_core import core_schema

from lakewright.schema.sql import name_sql
from lakewright.schema.types import Array, Chars, Decimal, MapOf, Scalar, Struct, StructField, Type
from lakewright.spec.expressions.values import ValueType
from lakewright.spec.models.base import Model
from lakewright.spec.models.type_text import DEEPEST, LONGEST, parse_sql_type


def parse_type(declared: object) -> Type:
    """Return the type that a text (`decimal(10,2)`, `array<struct<a: int>>`) or a map declares.

    Maps are Flowman's: `{kind: struct, fields: [...]}`, `{kind: array, elementType: ...}`,
    `{kind: map, keyType: ..., valueType: ...}`.

    Raises:
        ValueError: There is no such type.

    Example:
        >>> parse_type("ARRAY<Long>").ddl
        'array<bigint>'
    """
    if isinstance(declared, (Scalar, Decimal, Chars, Array, MapOf, Struct)):
        return declared
    if isinstance(declared, Mapping):
        return _from_map(declared, 0)
    if not isinstance(declared, str) or len(declared) > LONGEST:
        raise ValueError("a type is a text such as decimal(10,2), or a map with a kind")
    return parse_sql_type(declared)


def _from_map(declared: Mapping[str, Any], depth: int) -> Type:
    def inner(key: str) -> Type:
        if key not in declared:
            raise ValueError(f"a type of kind {kind!r} needs {key!r}")
        part = declared[key]
        return _from_map(part, depth + 1) if isinstance(part, Mapping) else parse_type(part)

    kind = str(declared.get("kind", "")).lower()
    if depth > DEEPEST:
        raise ValueError(f"the type is nested more than {DEEPEST} deep")
    known = {
        "array": {"elementType", "containsNull"},
        "map": {"keyType", "valueType", "containsNull"},
        "struct": {"fields"},
    }
    if kind not in known:
        raise ValueError(f"no type of kind {declared.get('kind')!r}; the kinds are array, map and struct")
    if unknown := sorted(set(declared) - known[kind] - {"kind"}):
        raise ValueError(f"unknown key {unknown[0]!r} in a type of kind {kind!r}")
    if kind == "array":
        return Array(inner("elementType"))
    if kind == "map":
        return MapOf(inner("keyType"), inner("valueType"))
    fields = [Field.model_validate(field) for field in declared.get("fields") or ()]
    return Struct(tuple(field.as_struct_field() for field in fields))


class _TypeSchema:
    def __get_pydantic_json_schema__(
        self, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return {
            "type": ["string", "object"],
            "examples": ["string", "bigint", "decimal(10,2)", "array<string>"],
        }


TypeText = Annotated[
    Type, PlainValidator(parse_type), PlainSerializer(lambda found: found.ddl), _TypeSchema()
]
"""A type, written as text or as a map."""


class Field(Model):
    """One column of a declared schema."""

    name: str = Declared(min_length=1, description="Name of the column.")
    type: TypeText = Declared(description="Type, such as bigint or decimal(10,2).")
    nullable: bool = Declared(default=True, description="Whether the column may be null.")
    description: str | None = Declared(default=None, description="Comment of the table's column.")
    default: str | None = Declared(default=None, description="Value of the column in rows that lack it.")
    format: str | None = Declared(
        default=None, description="Format of the values in files, for file formats that need it."
    )
    size: int | None = Declared(default=None, description="Width of the column in fixed-width formats.")
    charset: str | None = Declared(default=None, description="Character set, for databases with several.")
    collation: str | None = Declared(default=None, description="Collation of the column in a database.")
    renamed_from: str | None = Declared(
        default=None, description="Former name; a migration renames that column."
    )

    @classmethod
    def of(cls, column: StructField) -> Field:
        """Return the column of a type as one of a declared schema."""
        return cls(
            name=column.name, type=column.type, nullable=column.nullable, description=column.description
        )

    def as_struct_field(self) -> StructField:
        """Return the field as a field of a struct."""
        return StructField(self.name, self.type, self.nullable, self.description)

    @property
    def ddl(self) -> str:
        """The column in Spark's `CREATE TABLE`, without its comment."""
        return f"{name_sql(self.name)} {self.type.ddl}{'' if self.nullable else ' NOT NULL'}"


class PartitionField(Model):
    """One partition column of a relation."""

    name: str = Declared(min_length=1, description="Name of the column.")
    type: TypeText = Declared(description="Type.")
    description: str | None = Declared(default=None, description="What the column contains.")
    granularity: str | None = Declared(
        default=None, description="Distance between its values, such as P1D or 1."
    )

    @property
    def value_type(self) -> ValueType:
        """The type in which its values are parsed."""
        return ValueType.parse(self.type.ddl)

    def as_field(self) -> Field:
        """Return the column as a field of the relation's schema. Partition values are never null."""
        return Field(name=self.name, type=self.type, nullable=False, description=self.description)
