"""Reading of Parquet files, each in its own types, and together in types that hold the values of all.

Source: the rules of reading, "Inference" and "What fits".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

from lakewright.lake.files import Files
from lakewright.lake.parquet_footer import footer_of
from lakewright.lake.paths import FileEntry, is_stored
from lakewright.reader.groups import Group, grouped, merged_columns, union_of_groups
from lakewright.reader.parquet_types import (
    Footer,
    Footers,
    homeless,
    is_foreign,
    read_type,
    true_sql,
    true_type,
)
from lakewright.reader.source import Reading, Source, uri
from lakewright.schema.shape import parts, without_void
from lakewright.schema.spark import type_of
from lakewright.schema.sql import name_sql
from lakewright.schema.types import Struct, Type
from lakewright.spark.functions import functions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


_OPTIONS = {"parquet.page.verify-checksum.enabled": "true"}
_CHOOSING = frozenset(
    ("ignorecorruptfiles", "ignoremissingfiles", "modifiedafter", "modifiedbefore", "pathglobfilter")
)
"""Options, in lower case, by which Spark alone chooses the files."""
_REQUESTS = 32
_REMEDIES = {
    "float16": "Deliver it as float32",
    "interval": "Deliver it as a number of seconds, or as text",
}
_INDEX = re.compile(r"__index_level_\d+__")
"""The columns in which pandas keeps the numbers of its rows."""


def read_parquet(reading: Reading) -> DataFrame:
    """Return the rows of Parquet files, lazily; columns of several files are merged by name.

    A column that has only nulls, and no type in any file, has none in the frame; parts inside other columns
    that have no type are left out.

    Raises:
        LakewrightError: A file is damaged.
        LakewrightError: A column has a type that can't be read, or types that no type holds.
    """
    source, known = reading.source, reading.known
    is_chosen = any(name.lower() in _CHOOSING for name in source.given)
    is_read = (source.is_local or is_stored(source.place)) and not is_chosen
    footers = read_footers(reading.system, source) if is_read else None
    if footers is None:
        merging = {"mergeSchema": "true"} if len(source.files) > 1 else {}
        return reading.load(options={**_OPTIONS, **merging})
    schemas = _schemas(footers)
    if len(schemas) == 1 and schemas[0].is_sparks_own:
        return reading.load(options=_OPTIONS)
    schemas = [each.known(reading) for each in schemas]
    order = _names(schemas, {name.lower() for name in known.names}, reading.note)
    for each in schemas:
        _check(source, each, order)
    # Files in which a column has no type are not read together with those in which it has one.
    groups = [
        replace(group, columns=_readable(group.columns))
        for group in grouped((each.with_columns(order), each.files) for each in _with_rows(schemas))
    ]
    true = [_true_columns(group.columns) for group in groups]
    columns = merged_columns(source, ((own, group.files[0]) for own, group in zip(true, groups, strict=True)))
    for each in schemas:  # a file without rows says nothing of types, but has its columns
        columns = _with_others(columns, _true_columns(_readable(each.with_columns(order))))
    frames = [(_group_frame(reading, group), own) for group, own in zip(groups, true, strict=True)]
    frame = union_of_groups(reading, frames, columns)
    typed, kept = _by_lower_name(columns), {name.lower() for name in known.keys}
    if list(typed) == list(order):
        return frame
    return frame.selectExpr(
        *(
            name_sql(typed[lower]) if lower in typed else _typeless_sql(name, is_key=lower in kept)
            for lower, name in order.items()
        ),
        *(name_sql(name) for name in frame.columns if name == reading.corrupt),
    )


@dataclass(frozen=True, slots=True)
class _Schema:
    """The columns of files that have the same.

    Attributes:
        columns: The columns, with the types in the files.
        files: The files.
        rows: Number of their rows.
        is_of_spark: Whether Spark has written its own schema into them.
    """

    columns: Struct
    files: tuple[FileEntry, ...]
    rows: int
    is_of_spark: bool

    @property
    def is_sparks_own(self) -> bool:
        """Whether Spark has to say which types these are, and does it right."""
        is_plain = true_type(self.columns) == self.columns == without_void(self.columns)
        is_read = homeless(self.columns, "") is None and not any(map(_is_index, _names_of(self.columns)))
        return is_plain and is_read and (self.is_of_spark or is_foreign(self.columns))

    def with_columns(self, names: Collection[str]) -> Struct:
        """Return those of its columns whose names, in lower case, are given."""
        return Struct(tuple(each for each in self.columns.fields if each.name.lower() in names))

    def known(self, reading: Reading) -> _Schema:
        """Return the schema with the types that only Spark knows."""
        if not is_foreign(self.columns):
            return self
        kind = type_of(reading.load([uri(reading.source.path(self.files[0]))]).schema)
        return replace(self, columns=kind) if isinstance(kind, Struct) else self


def read_footers(files: Files, source: Source) -> list[tuple[FileEntry, Footer]] | None:
    """Return the footers of all files of a source; None if one is gone.

    Raises:
        LakewrightError: A file is damaged.
    """
    footers = Footers()

    def footer(file: FileEntry) -> bytes:
        path = source.path(file)
        return footer_of(path, file.size, lambda start, size: files.read_range(path, start, size))

    found = []
    with ThreadPoolExecutor(1 if source.is_local else _REQUESTS) as pool:
        read = map(footer, source.files) if source.is_local else pool.map(footer, source.files)
        for file in source.files:
            try:
                found.append((file, footers.read(next(read))))
            except ValueError as error:
                path = source.path(file)
                why = str(error) if path in str(error) else f"{path}: {error}"
                raise source.error(why, "Deliver it again", may_skip=True) from error
            except OSError:
                return None  # Spark reports the error when it reads the file
    return found


def _schemas(footers: Sequence[tuple[FileEntry, Footer]]) -> list[_Schema]:
    # Equal beginnings of footers give the same object, whose hash would take longer.
    found: dict[tuple[int, bytes | None], list[tuple[FileEntry, Footer]]] = {}
    for file, footer in footers:
        found.setdefault((id(footer.columns), footer.sparks), []).append((file, footer))
    return [
        _Schema(
            columns=alike[0][1].columns,
            files=tuple(file for file, _ in alike),
            rows=sum(footer.rows for _, footer in alike),
            is_of_spark=alike[0][1].sparks is not None,
        )
        for alike in found.values()
    ]


def _with_rows(schemas: Sequence[_Schema]) -> Sequence[_Schema]:
    return [each for each in schemas if each.rows] or schemas


def _names_of(columns: Struct) -> list[str]:
    return [each.name for each in columns.fields]


def _is_index(name: str) -> bool:
    return _INDEX.fullmatch(name) is not None


def _names(
    schemas: Iterable[_Schema], declared: Collection[str], note: Callable[[str], None]
) -> dict[str, str]:
    """Return the names of all columns but the indexes of pandas, by themselves in lower case."""
    names: dict[str, str] = {}
    for each in schemas:
        for name in _names_of(each.columns):
            names.setdefault(name.lower(), name)
    for lower, name in list(names.items()):
        if _is_index(name) and lower not in declared:
            note(f"the column {name}, the numbers of pandas' rows, is left out; declare it to keep it")
            del names[lower]
    return names


def _check(source: Source, schema: _Schema, order: Collection[str]) -> None:
    """Raise the source's error for columns that can't be read."""
    place = source.path(schema.files[0])
    twins = _twins(schema.columns, "")
    if twins is not None:
        raise source.error(
            f"the columns {twins[0]!r} and {twins[1]!r} of {place} have the same name but for case",
            "Rename one of them",
            is_drift=True,
            column=twins[1],
        )
    for column in schema.with_columns(order).fields:
        found = homeless(column.type, column.name)
        if found is not None:
            where, kind = found
            raise source.error(
                f"column {where!r} of {place} is of type {kind}, which neither Spark nor a table has",
                _REMEDIES.get(kind, "Deliver it as text"),
                is_drift=True,
                column=where,
                type=kind,
            )


def _twins(kind: Type, place: str) -> tuple[str, str] | None:
    """Return two fields of one struct whose names are the same but for case; None without any."""
    seen: dict[str, str] = {}
    for step, part, _ in parts(kind):
        path = f"{place}{step}".removeprefix(".")
        if step and step.lower() in seen:
            return seen[step.lower()], path
        seen[step.lower()] = path
        if (found := _twins(part, path)) is not None:
            return found
    return None


def _by_lower_name(columns: Struct) -> dict[str, str]:
    return {each.name.lower(): each.name for each in columns.fields}


def _readable(columns: Struct) -> Struct:
    """Return the columns that have a type, without the parts inside them that have none."""
    return cast(Struct, without_void(columns) or Struct(()))


def _true_columns(columns: Struct) -> Struct:
    return cast(Struct, true_type(columns))


def _with_others(columns: Struct, others: Struct) -> Struct:
    """Return columns with those of others whose names they lack."""
    names = _by_lower_name(columns)
    return Struct((*columns.fields, *(each for each in others.fields if each.name.lower() not in names)))


def _group_frame(reading: Reading, group: Group) -> DataFrame:
    """Return the rows of the files of a group, in their true types."""
    part, columns = reading.of(reading.source.only(group.files)), group.columns.fields
    schema = ", ".join(f"{name_sql(each.name)} {read_type(each.type).ddl}" for each in columns)
    frame = part.load(options=_OPTIONS, schema=schema or None)
    changed = {each.name: each.type for each in columns if true_type(each.type) != each.type}
    made = {name: functions.expr(true_sql(name_sql(name), kind, name)) for name, kind in changed.items()}
    return frame.withColumns(made) if made else frame


def _typeless_sql(name: str, *, is_key: bool) -> str:
    return f"{'cast(null as int)' if is_key else 'null'} as {name_sql(name)}"
