"""The `spark` schema: a schema in Spark's JSON form."""

from __future__ import annotations

from typing import Any

from lakewright.schema.types import Array, MapOf, Struct, StructField, Type
from lakewright.schemas.schema import TextSchema
from lakewright.spec.models.fields import Field
from lakewright.spec.models.type_text import parse_json_columns


class SparkSchema(TextSchema):
    """The columns are the fields of a struct in Spark's JSON form."""

    def parse(self, document: Any) -> Struct:
        """Return the struct's fields."""
        return Struct(parse_json_columns(document))


def as_spark_json(fields: tuple[Field, ...]) -> dict[str, Any]:
    """Return columns in Spark's JSON form, which this kind of schema can read.

    Example:
        >>> from lakewright.spec.models.fields import parse_type
        >>> as_spark_json((Field(name="id", type=parse_type("int")),))["fields"][0]["type"]
        'integer'
    """
    return {"type": "struct", "fields": [_field_json(field) for field in fields]}


_NAMES = {"tinyint": "byte", "smallint": "short", "int": "integer", "bigint": "long"}


def _field_json(field: Field | StructField) -> dict[str, Any]:
    comment = {"comment": field.description} if field.description else {}
    return {
        "name": field.name,
        "type": _type_json(field.type),
        "nullable": field.nullable,
        "metadata": comment,
    }


def _type_json(found: Type) -> Any:
    if isinstance(found, Array):
        return {"type": "array", "elementType": _type_json(found.element), "containsNull": True}
    if isinstance(found, MapOf):
        keys = {"type": "map", "keyType": _type_json(found.key), "valueType": _type_json(found.value)}
        return {**keys, "valueContainsNull": True}
    if isinstance(found, Struct):
        return {"type": "struct", "fields": [_field_json(field) for field in found.fields]}
    return _NAMES.get(found.ddl, found.ddl)
