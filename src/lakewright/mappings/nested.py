"""Mappings that turn nested fields, elements and columns into columns and rows, or into other structures."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self, TypeAlias

from pydantic import BeforeValidator, field_validator, model_validator
from pydantic import Field as Declared

from lakewright.lake.columns import column, fields_of
from lakewright.mappings.mapping import ColumnName, InputMapping, NamedColumn, check_distinct
from lakewright.schema.shape import NESTED, parts, with_parts
from lakewright.schema.sql import name_sql
from lakewright.schema.types import Chars, Decimal, Struct, Type
from lakewright.spark.functions import functions
from lakewright.spec.models.base import Listed, Model, TextMap, Texts, from_text, inconsistent
from lakewright.spec.models.fields import TypeText, parse_type
from lakewright.spec.suggestions import one_of
from lakewright.transform.steps import find_name

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructType

    from lakewright.workspace.workspace import Workspace


Path: TypeAlias = tuple[str, ...]

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


NamingText = Annotated[Naming, from_text(one_of(Naming, "naming"))]
JoinedBy = Annotated[NamingText, Declared(description="How names of flattened columns are joined.")]


class FlattenMapping(InputMapping):
    """Returns a column for each nested struct field, named after its path.

    Names are only joined; `conform` changes them, too.
    """

    naming: JoinedBy = Naming.SNAKE_CASE

    def apply(self, frame: DataFrame, workspace: Workspace) -> DataFrame:
        """Return the flattened columns in order."""
        return flattened(frame, self.naming)


def flattened(frame: DataFrame, naming: Naming) -> DataFrame:
    """Return a frame without structs; arrays and maps are kept.

    Raises:
        SpecError: Two columns would have the same name.
    """
    paths = list(leaf_paths(frame.schema))
    names = [naming.joined(path) for path in paths]
    check_distinct(names, "when flattened", "Rename one of them first.")
    return frame.select(*(_at(path).alias(name) for path, name in zip(paths, names, strict=True)))


def leaf_paths(struct: Any, before: Path = ()) -> Iterator[Path]:
    """Yield the paths of the columns of a schema, or of the fields of a struct, that are no structs."""
    for field in struct.fields:
        path = (*before, field.name)
        if hasattr(field.dataType, "fields"):
            yield from leaf_paths(field.dataType, path)
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
            *(_at((*at, name)).alias(name) for name in chosen),
            *(_at((*at, *path.split("."))).alias(name) for name, path in self.rename.items()),
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
    naming: JoinedBy = Naming.SNAKE_CASE

    def named_columns(self) -> Iterable[NamedColumn]:
        """Return the array, and columns of the original row."""
        return (*self.named("array", self.array), *self.outer_columns.named(self.input))

    def apply(self, frame: DataFrame, workspace: Workspace) -> DataFrame:
        """Return the columns of the row, followed by those of the element.

        Raises:
            SpecError: Two of them have the same name.
        """
        from pyspark.sql.types import StructType

        chosen = self.outer_columns.listed("keep", "drop")
        self.note_absent(workspace, chosen, frame.columns)
        path = tuple(self.array.split("."))
        exploded = frame.withColumn(_ELEMENT, functions.explode(_at(path)))
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

    naming_fields: ClassVar[tuple[str, ...]] = ("stack_columns", "keep_columns", "drop_columns")

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
    """Renames columns and struct fields, replaces types and flattens structs."""

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
        if isinstance(found, Struct):
            names = [self._named(field.name) for field in found.fields]
            check_distinct(names, "in a struct when renamed", "Rename one of them first.")
            renamed = zip(found.fields, names, strict=True)
            found = Struct(tuple(replace(field, name=name) for field, name in renamed))
        if not isinstance(found, NESTED):
            return self.types.get(_type_name(found), found)
        return with_parts(found, (self._conformed(part) for _, part, _ in parts(found)))


def _types_in(found: Type) -> Iterator[Type]:
    """Yield a type that is replaced as a whole: a plain one, or those of the elements and fields inside."""
    if not isinstance(found, NESTED):
        yield found
    for _, part, _ in parts(found):
        yield from _types_in(part)


def _type_name(found: Type) -> str:
    if isinstance(found, Decimal):
        return "decimal"
    return "string" if isinstance(found, Chars) else found.ddl


_NEEDS = {"explode": "path", "rename": "columns", "lift": "columns", "nest": "name", "struct": "name"}
"""The key that an entry of a kind can't do without."""


def _columns(declared: Any) -> Any:
    """Return a list of paths as a map: each path keeps the name of its last step."""
    listed = [declared] if isinstance(declared, str) else declared
    if isinstance(listed, (list, tuple)) and all(isinstance(each, str) for each in listed):
        return {path.rpartition(".")[2]: path for path in listed}
    return declared


class AssemblePart(Model):
    """Adds columns to the result, or to a struct."""

    kind: Literal["append", "flatten", "explode", "rename", "lift", "nest", "struct"] = Declared(
        default="append",
        description="`append`: columns as they are; `flatten`: nested fields as columns; `explode`: a row per"
        " element; `rename` and `lift`: single columns; `nest` and `struct`: columns as one struct.",
    )
    path: str = Declared(default="", description="Path of the struct; default: the row.")
    keep: Texts = Declared(default=(), description="Only these paths; default: all.")
    drop: Texts = Declared(default=(), description="All but these paths.")
    prefix: str = Declared(default="", description="Start of the names of flattened columns.")
    naming: JoinedBy = Naming.SNAKE_CASE
    name: str | None = Declared(default=None, description="Name of the struct, or of the exploded column.")
    columns: Annotated[dict[str, str], BeforeValidator(_columns)] = Declared(
        default_factory=dict, description="New names with paths, or a list of paths."
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        needed = _NEEDS.get(self.kind)
        if needed is not None and not getattr(self, needed):
            raise inconsistent(f"an entry of kind {self.kind} needs `{needed}`")
        if self.kind == "struct" and not self.has_content:
            raise inconsistent("an entry of kind struct needs `columns`")
        return self

    @property
    def has_content(self) -> bool:
        """Whether it names any columns."""
        return bool(self.columns)

    def assembled(self, schema: StructType) -> list[Column]:
        """Return the columns for an input of this schema; columns that it lacks are left out."""
        base = _steps(self.path)
        if self.kind == "explode":
            return [functions.explode(_at(base)).alias(self.name or base[-1])]
        if self.kind in ("append", "flatten", "nest"):
            return self._selected(schema, base)
        named = [
            _at((*base, *_steps(path))).alias(name)
            for name, path in self.columns.items()
            if _find(schema, (*base, *_steps(path))) is not None
        ]
        if self.kind != "struct":
            return named
        return [functions.struct(*named, *self.parts(schema)).alias(self.name or "")]

    def absent(self, schema: StructType) -> Iterator[str]:
        """Yield the paths that are named here, and that an input of this schema lacks."""
        base = _steps(self.path)
        if base and _find(schema, base) is None:
            yield ".".join(base)
            return
        for path in (*self.keep, *self.drop, *self.columns.values()):
            steps = (*base, *_steps(path))
            if _find(schema, steps) is None:
                yield ".".join(steps)

    def parts(self, schema: StructType) -> list[Column]:
        """Return the further columns of a struct."""
        return []

    def _selected(self, schema: StructType, base: Path) -> list[Column]:
        found = _find(schema, base)
        fields = getattr(found, "fields", None)
        if fields is None:
            return []
        choice = _Choice(tuple(map(_steps, self.keep)), tuple(map(_steps, self.drop)))
        if self.kind == "flatten":
            return [
                _at((*base, *path)).alias(self.prefix + self.naming.joined(path))
                for path in leaf_paths(found)
                if not choice.hides(path)
            ]
        columns = choice.columns(found, base, ())
        return [functions.struct(*columns).alias(self.name or "")] if self.kind == "nest" else columns


class AssembleEntry(AssemblePart):
    """Adds columns to the result."""

    entries: Listed[AssemblePart] = Declared(
        default=(), description="What a `struct` consists of, instead of `columns`."
    )

    @model_validator(mode="before")
    @classmethod
    def _nested(cls, declared: Any) -> Any:
        # In Flowman, the columns of a struct are entries, too.
        if isinstance(declared, dict) and declared.get("kind") == "struct":
            parts = declared.get("columns")
            if isinstance(parts, (list, tuple)) and any(isinstance(each, dict) for each in parts):
                rest = {key: value for key, value in declared.items() if key != "columns"}
                return {**rest, "entries": parts}
        return declared

    @property
    def has_content(self) -> bool:
        """Whether it names any columns."""
        return bool(self.columns or self.entries)

    def absent(self, schema: StructType) -> Iterator[str]:
        """Yield the paths that are named here or in the entries, and that an input of this schema lacks."""
        yield from super().absent(schema)
        for entry in self.entries:
            yield from entry.absent(schema)

    def parts(self, schema: StructType) -> list[Column]:
        """Return the columns that the entries of a struct add to it."""
        return [each for entry in self.entries for each in entry.assembled(schema)]


class _Choice:
    """Chooses fields by the paths to keep and those to drop; case is ignored."""

    def __init__(self, keep: tuple[Path, ...], drop: tuple[Path, ...]) -> None:
        self.keep = [_lower(path) for path in keep]
        self.drop = [_lower(path) for path in drop]

    def _is_out(self, path: Path) -> bool:
        own = _lower(path)
        is_kept = not self.keep or any(_starts(own, path) or _starts(path, own) for path in self.keep)
        return not is_kept or own in self.drop

    def _is_whole(self, path: Path) -> bool:
        own = _lower(path)
        deeper = any(_starts(each, own) and each != own for each in (*self.keep, *self.drop))
        return not deeper or any(_starts(own, each) for each in self.keep if each != own)

    def hides(self, path: Path) -> bool:
        """Return whether a field, or a struct around it, is not chosen."""
        return any(self._is_out(path[:length]) for length in range(1, len(path) + 1))

    def columns(self, struct: Any, base: Path, before: Path) -> list[Column]:
        """Return the chosen fields of a struct; of a nested struct, those of its fields that are chosen."""
        found = []
        for field in struct.fields:
            path = (*before, field.name)
            if self._is_out(path):
                continue
            whole = _at((*base, *path))
            if not hasattr(field.dataType, "fields") or self._is_whole(path):
                found.append(whole.alias(field.name))
                continue
            inner = self.columns(field.dataType, base, path)
            if inner:
                part = functions.when(whole.isNotNull(), functions.struct(*inner))
                found.append(part.alias(field.name))
        return found


class AssembleMapping(InputMapping):
    """Returns rows with a new structure: each entry adds columns, from any depth of the input.

    Columns that the input lacks are left out; the run warns of them.
    """

    columns: Listed[AssembleEntry] = Declared(min_length=1, description="The entries, in order.")

    @model_validator(mode="after")
    def _check(self) -> Self:
        if sum(entry.kind == "explode" for entry in self.columns) > 1:
            raise inconsistent("only one entry may be of kind explode", remedy="Chain several mappings.")
        return self

    def apply(self, frame: DataFrame, workspace: Workspace) -> DataFrame:
        """Return the columns of all entries."""
        schema = frame.schema
        absent = [path for entry in self.columns for path in entry.absent(schema)]
        self.note_absent(workspace, absent, frame.columns)
        return frame.select(*(each for entry in self.columns for each in entry.assembled(schema)))


def _steps(path: str) -> Path:
    return tuple(step for step in path.split(".") if step)


def _lower(path: Path) -> Path:
    return tuple(step.lower() for step in path)


def _starts(path: Path, start: Path) -> bool:
    return path[: len(start)] == start


def _at(path: Path) -> Column:
    return functions.col(name_sql(*path))


def _find(schema: StructType, path: Path) -> Any:
    """Return the type at a path, or None."""
    found: Any = schema
    for step in path:
        fields = getattr(found, "fields", ())
        found = next((field.dataType for field in fields if field.name.lower() == step.lower()), None)
    return found
