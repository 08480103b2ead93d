"""The `avro` schema: a record schema of Apache Avro.

Source: the Apache Avro specification, "Schema Declaration" and "Logical Types".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lakewright.schema.types import Array, Decimal, MapOf, Scalar, Struct, StructField, Type
from lakewright.schemas.schema import NullableSchema
from lakewright.spec.models.fields import Field

_PRIMITIVES = {
    "null": "void",
    "boolean": "boolean",
    "int": "int",
    "long": "bigint",
    "float": "float",
    "double": "double",
    "bytes": "binary",
    "fixed": "binary",
    "string": "string",
    "enum": "string",
}
_LOGICAL = {
    "date": "date",
    "timestamp-millis": "timestamp",
    "timestamp-micros": "timestamp",
    "local-timestamp-millis": "timestamp_ntz",
    "local-timestamp-micros": "timestamp_ntz",
    "uuid": "string",
}


class AvroSchema(NullableSchema):
    """The columns are the fields of a record; a field whose type is a union with null may be null."""

    def parse(self, document: Any) -> Struct:
        """Return the record's fields."""
        return _record(document, {})


def _record(found: Mapping[str, Any], named: dict[str, Type]) -> Struct:
    return Struct(
        tuple(
            StructField(
                field["name"], _type(field["type"], named), _is_nullable(field["type"]), field.get("doc")
            )
            for field in found["fields"]
        )
    )


def _is_nullable(found: Any) -> bool:
    return found == "null" or (isinstance(found, list) and "null" in found)


def _type(found: Any, named: dict[str, Type]) -> Type:
    if isinstance(found, list):
        return _union([part for part in found if part != "null"], named)
    if isinstance(found, str):
        if found in named:
            return named[found]
        if found not in _PRIMITIVES:
            raise ValueError(f"type {found!r} is unknown")
        return Scalar(_PRIMITIVES[found])
    made = _complex(found, named)
    if "name" in found:
        named[found["name"]] = made
    return made


def _complex(found: Mapping[str, Any], named: dict[str, Type]) -> Type:
    kind, logical = found["type"], found.get("logicalType")
    if logical == "decimal":
        return Decimal(int(found["precision"]), int(found.get("scale", 0)))
    if logical in _LOGICAL:
        return Scalar(_LOGICAL[logical])
    if kind == "array":
        return Array(_type(found["items"], named))
    if kind == "map":
        return MapOf(Scalar("string"), _type(found["values"], named))
    if kind == "record":
        return _record(found, named)
    return _type(kind, named)


def _union(parts: list[Any], named: dict[str, Type]) -> Type:
    types = [_type(part, named) for part in parts]
    if len(types) == 1:
        return types[0]
    if set(types) == {Scalar("int"), Scalar("bigint")}:
        return Scalar("bigint")
    if set(types) == {Scalar("float"), Scalar("double")}:
        return Scalar("double")
    raise ValueError(f"a union of {', '.join(found.ddl for found in types)} can't be the type of a column")


_AVRO = {
    "tinyint": "int",
    "smallint": "int",
    "int": "int",
    "bigint": "long",
    "float": "float",
    "double": "double",
    "boolean": "boolean",
    "binary": "bytes",
    "date": {"type": "int", "logicalType": "date"},
    "timestamp": {"type": "long", "logicalType": "timestamp-micros"},
    "timestamp_ntz": {"type": "long", "logicalType": "local-timestamp-micros"},
}


def as_avro(fields: tuple[Field, ...], name: str) -> dict[str, Any]:
    """Return columns as an Avro record, which this kind of schema can read.

    Example:
        >>> as_avro((Field(name="id", type=Scalar("int"), nullable=False),), "t")["fields"]
        [{'name': 'id', 'type': 'int'}]
    """
    listed = [_avro_field(field, name) for field in fields]
    return {"type": "record", "name": name or "record", "fields": listed}


def _avro_field(field: Field | StructField, owner: str) -> dict[str, Any]:
    found = _avro_type(field.type, f"{owner}_{field.name}")
    doc = {"doc": field.description} if field.description else {}
    return {"name": field.name, "type": ["null", found] if field.nullable else found, **doc}


def _avro_type(found: Type, name: str) -> Any:
    if isinstance(found, Array):
        return {"type": "array", "items": ["null", _avro_type(found.element, name)]}
    if isinstance(found, MapOf):
        return {"type": "map", "values": ["null", _avro_type(found.value, name)]}
    if isinstance(found, Struct):
        fields = [_avro_field(field, name) for field in found.fields]
        return {"type": "record", "name": name, "fields": fields}
    if isinstance(found, Decimal):
        precision = {"precision": found.precision, "scale": found.scale}
        return {"type": "bytes", "logicalType": "decimal", **precision}
    return _AVRO.get(found.ddl, "string")
