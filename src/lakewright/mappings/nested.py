"""Mappings that turn nested fields, elements and columns into columns and rows."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

from pydantic import Field as Declared
from pydantic import field_validator

from lakewright.lake.columns import column, fields_of
from lakewright.mappings.mapping import ColumnName, InputMapping, NamedColumn, check_distinct
from lakewright.schema.sql import name_sql
from lakewright.schema.types import Array, Chars, Decimal, MapOf, Struct, Type
from lakewright.spark.functions import functions
from lakewright.spec.models.base import Listed, Model, TextMap, Texts, from_text
from lakewright.spec.models.fields import TypeText, parse_type
from lakewright.spec.suggestions import member_named
from lakewright.transform.steps import find_name

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructField

    from lakewright.workspace.workspace import Workspace


_BORDER = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|[_\-\s]+")


class Naming(StrEnum):
    """Style in which words are joined."""

    SNAKE_CASE = "snakeCase"
    CAMEL_CASE = "camelCase"
    CAMEL_CASE_UPPER = "camelCaseUpper"

    def joined(self, parts: Sequence[str]) -> str:
        """Return the parts joined to one name; the parts themselves are not changed.

        Example:
            >>> Naming.SNAKE_CASE.joined(["someOrder", "id"]), Naming.CAMEL_CASE.joined(["some_order", "id"])
            ('someOrder_id', 'some_orderId')
        """
        if self is Naming.SNAKE_CASE:
            return "_".join(parts)
        first, *rest = parts
        head = _capital(first) if self is Naming.CAMEL_CASE_UPPER else first
        return head + "".join(map(_capital, rest))

    def rename(self, name: str) -> str:
        """Return the name in this style, regardless of its current style.

        Example:
            >>> [naming.rename("someHTTPOrder_id") for naming in Naming]
            ['some_http_order_id', 'someHttpOrderId', 'SomeHttpOrderId']
        """
        words = [word.lower() for word in _BORDER.split(name) if word]
        return self.joined(words) if words else name


def _capital(word: str) -> str:
    return word[:1].upper() + word[1:]


NamingText = Annotated[Naming, from_text(lambda text: member_named(Naming, text) or text)]


class FlattenMapping(InputMapping):
    """Returns a column for each nested struct field, named after its path.

    Names are only joined; `conform` with `flatten` and `naming` changes them, too.
    """

    naming: NamingText = Declared(
        default=Naming.SNAKE_CASE, description="How names of flattened columns are joined: by `_` or by case."
    )

    def apply(self, frame: DataFrame, workspace: Workspace) -> DataFrame:
        """Return the flattened columns in order."""
        return flattened(frame, self.naming)


def flattened(frame: DataFrame, naming: Naming) -> DataFrame:
    """Return a frame without structs; arrays and maps are kept.

    Raises:
        SpecError: Two columns would have the same name.
    """
    paths = [path for field in frame.schema.fields for path in _paths(field, ())]
    names = [naming.joined(path) for path in paths]
    check_distinct(names, "when flattened", "Rename one of them first.")
    return frame.select(
        *(functions.col(name_sql(*path)).alias(name) for path, name in zip(paths, names, strict=True))
    )


def _paths(field: StructField, before: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    from pyspark.sql.types import StructType

    path = (*before, field.name)
    if isinstance(field.dataType, StructType):
        for inner in field.dataType.fields:
            yield from _paths(inner, path)
    else:
        yield path


_ELEMENT = "__element"


class ColumnChoice(Model):
    """Selects columns by path; `*` stands for all."""

    keep: Texts = Declared(default=(), description="Columns to keep even if `drop` includes them.")
    drop: Texts = Declared(default=(), description="Columns to remove.")
    rename: TextMap = Declared(
        default_factory=dict, description="New names, each with the path of the column."
    )

    def named(self, source: str) -> Iterator[NamedColumn]:
        """Yield the columns of a mapping that are named here, in a declaration's `outerColumns`."""
        for key in ("keep", "drop"):
            for index, name in enumerate(self.listed(key)):
                yield NamedColumn(source, name, ("outerColumns", key, index))
        for name, path in self.rename.items():
            yield NamedColumn(source, path, ("outerColumns", "rename", name))

    def listed(self, *keys: str) -> list[str]:
        """Return the columns that `keep` or `drop` name."""
        return [name for key in keys for name in getattr(self, key) if name != "*"]

    def columns(self, names: Sequence[str], at: tuple[str, ...] = ()) -> list[Column]:
        """Return the selected columns among these columns, or among the fields of the struct at a path."""
        dropped = {name.lower() for name in self.drop}
        kept = {name.lower() for name in self.keep}
        renamed = {path.lower() for path in self.rename.values()}
        chosen = [
            name
            for name in names
            if name.lower() in kept or not ("*" in dropped or name.lower() in dropped | renamed)
        ]
        return [
            *(functions.col(name_sql(*at, name)).alias(name) for name in chosen),
            *(
                functions.col(name_sql(*at, *path.split("."))).alias(name)
                for name, path in self.rename.items()
            ),
        ]


class ExplodeMapping(InputMapping):
    """Returns a row per array element, with its fields and columns of the original row.

    Rows without elements are removed.
    """

    array: str = Declared(description="Path of the array.")
    outer_columns: ColumnChoice = Declared(
        default_factory=ColumnChoice, description="Columns of the original row; default: all but the array's."
    )
    inner_columns: ColumnChoice = Declared(
        default_factory=ColumnChoice, description="Fields of the elements; default: all."
    )
    flatten: bool = Declared(default=False, description="Whether struct fields become columns.")
    naming: NamingText = Declared(
        default=Naming.SNAKE_CASE, description="How names of flattened columns are joined: by `_` or by case."
    )

    def named_columns(self) -> Iterable[NamedColumn]:
        """Return the array, and columns of the original row."""
        return (
            NamedColumn(self.input, self.array, ("array",)),
            *self.outer_columns.named(self.input),
        )

    def apply(self, frame: DataFrame, workspace: Workspace) -> DataFrame:
        """Return the columns of the row, followed by those of the element.

        Raises:
            SpecError: Two of them have the same name.
        """
        from pyspark.sql.types import StructType

        chosen = self.outer_columns.listed("keep", "drop")
        self.note_absent(workspace, chosen, frame.columns)
        path = self.array.split(".")
        exploded = frame.withColumn(_ELEMENT, functions.explode(functions.col(name_sql(*path))))
        outer = [name for name in frame.columns if name.lower() != path[0].lower() or len(path) > 1]
        element = exploded.schema[_ELEMENT].dataType
        fields = element.fieldNames() if isinstance(element, StructType) else []
        chosen = self.inner_columns.listed("keep", "drop")
        self.note_absent(workspace, chosen, fields, lacks=f"the elements of {self.array} have no field")
        if isinstance(element, StructType):
            inner = self.inner_columns.columns(fields, (_ELEMENT,))
        else:
            inner = [functions.col(_ELEMENT).alias(path[-1])]
        found = exploded.select(*self.outer_columns.columns(outer), *inner)
        remedy = "Rename or drop one of them with `outerColumns` or `innerColumns`."
        check_distinct(found.columns, "when exploded: one of the row, one of the element", remedy)
        return flattened(found, self.naming) if self.flatten else found


class StackMapping(InputMapping):
    """Returns a row per stacked column with its label, its value and the kept columns."""

    name_column: str = Declared(description="New column for the label.")
    value_column: str = Declared(description="New column for its value.")
    stack_columns: dict[str, str] = Declared(
        min_length=1, description="Columns to stack, each with its label."
    )
    drop_nulls: bool = Declared(default=False, description="Remove rows whose value is null.")
    keep_columns: Listed[ColumnName] = Declared(
        default=(), description="Columns to keep; default: all others."
    )
    drop_columns: Listed[ColumnName] = Declared(default=(), description="Columns to remove.")

    def named_columns(self) -> Iterable[NamedColumn]:
        """Return the columns to stack, to keep and to remove."""
        return (
            *self.named("stackColumns", self.stack_columns),
            *self.named("keepColumns", self.keep_columns),
            *self.named("dropColumns", self.drop_columns),
        )

    def apply(self, frame: DataFrame, workspace: Workspace) -> DataFrame:
        """Return the kept columns, followed by label and value."""
        self.note_absent(workspace, self.drop_columns, frame.columns, use=" to drop")
        stacked = {
            find_name(frame.columns, name) or name: label for name, label in self.stack_columns.items()
        }
        kept = self.keep_columns or tuple(name for name in frame.columns if name not in stacked)
        kept = tuple(
            name for name in kept if name.lower() not in {drop.lower() for drop in self.drop_columns}
        )
        pairs = [
            functions.struct(
                functions.lit(label).alias(self.name_column), column(name).alias(self.value_column)
            )
            for name, label in stacked.items()
        ]
        rows = frame.select(*map(column, kept), functions.inline(functions.array(*pairs)))
        return rows.where(column(self.value_column).isNotNull()) if self.drop_nulls else rows


class ConformMapping(InputMapping):
    """Renames columns and struct fields, replaces types and flattens structs, as configured."""

    naming: NamingText | None = Declared(default=None, description="Style of names; default: names are kept.")
    types: dict[str, TypeText] = Declared(
        default_factory=dict,
        description="Replacement for each type. The run warns of types that no column has.",
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
