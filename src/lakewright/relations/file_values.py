"""Values of CSV and JSON files of relations: read as they are written, and converted to the declared types.

Source: the rules of reading, "Two steps" and "What fits".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from lakewright.lake.columns import find_column
from lakewright.schema.convert import convert
from lakewright.schema.fault import placed_sql
from lakewright.schema.rules import ValueRules
from lakewright.schema.scalars import TIMES, class_of
from lakewright.schema.shape import plain_type
from lakewright.schema.sql import name_sql, text_sql
from lakewright.schema.types import TEXT, VARIANT, Array, MapOf, Struct, StructField, Type
from lakewright.spec.models.fields import Field

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["FileValues", "are_raw"]

_SPARKS_OWN = (
    "enabledatetimeparsingfallback",
    "locale",
    "nanvalue",
    "negativeinf",
    "positiveinf",
    "singlevariantcolumn",
    "timezone",
)
"""Options, in lower case, about how values are written that only Spark's own readers know."""

_FORMATS = {"date": "dateformat", "timestamp": "timestampformat", "timestamp_ntz": "timestampntzformat"}
_FROM_TEXT = ("whole", "decimal", "float", "boolean", "date", *TIMES)


def are_raw(options: Mapping[str, str], fields: Sequence[Field]) -> bool:
    """Return whether values are read as they are written, not by Spark in the declared types.

    Args:
        options: The relation's options, their names in lower case.
        fields: The declared columns.
    """
    has_formats = any(name in options for name in _FORMATS.values())
    # A column has one format, also for all that is inside it.
    is_mixed = has_formats and any(
        isinstance(field.type, Struct | Array | MapOf) and any(each in field.type.ddl for each in _FORMATS)
        for field in fields
    )
    return not is_mixed and not any(name in options for name in _SPARKS_OWN)


@dataclass(frozen=True, slots=True)
class FileValues:
    """How the values of a relation's files become those of its columns.

    Attributes:
        label: The relation as messages name it.
        format: The format of the files, csv or json.
        options: The relation's options, their names in lower case.
        folders: Columns, in lower case, that are named by folders.
        zone: Time zone of times without an offset.
    """

    label: str
    format: str
    options: Mapping[str, str]
    folders: frozenset[str]
    zone: str

    def raw(self, field: Field) -> Field:
        """Return a column with the type in which it is read without loss."""
        return field.model_copy(update={"type": self._raw_type(field)})

    def converted(self, frame: DataFrame, fields: Sequence[Field]) -> DataFrame:
        """Return the columns in their declared types; one that the files lack is null.

        A value that does not fit fails the query.
        """
        return frame.selectExpr(*(f"{self._value(frame, each)} as {name_sql(each.name)}" for each in fields))

    def _value(self, frame: DataFrame, field: Field) -> str:
        name = find_column(frame, field.name)
        if name is None:
            return f"cast(null as {plain_type(field.type).ddl})"
        option = self.options.get(_FORMATS.get(field.type.ddl, ""))
        rules = ValueRules(self.zone, format=field.format or option)
        made = convert(name_sql(name), self._raw_type(field), field.type, column=field.name, rules=rules)
        if made.fault is None:
            return made.sql
        # A file may have a column of that name, which hides Spark's.
        is_hidden = find_column(frame, "_metadata") is not None
        path = "" if is_hidden else f", ', ', {_PATH}"
        place = f"concat({text_sql(self.label)}{path})"
        return replace(made, fault=placed_sql(made.fault, place)).strict

    def _raw_type(self, field: Field) -> Type:
        if field.name.lower() in self.folders:
            return plain_type(field.type)
        return _raw_type(field.type, is_json=self.format == "json")


_PATH = "regexp_replace(url_decode(replace(_metadata.file_path, '+', '%2B')), '^file:/+', '/')"


def _raw_type(kind: Type, *, is_json: bool) -> Type:
    if class_of(kind) == "text" or (isinstance(kind, Struct | Array | MapOf) and not is_json):
        return TEXT
    if isinstance(kind, Struct):
        fields = (StructField(each.name, _raw_type(each.type, is_json=True)) for each in kind.fields)
        return Struct(tuple(fields))
    if isinstance(kind, Array):
        return Array(_raw_type(kind.element, is_json=True))
    if isinstance(kind, MapOf):
        return MapOf(TEXT, _raw_type(kind.value, is_json=True))
    if class_of(kind) not in _FROM_TEXT:
        return kind
    # Only of whole numbers it counts whether they are numbers: 7.0 is one, the text of it is none.
    return VARIANT if is_json and class_of(kind) == "whole" else TEXT
