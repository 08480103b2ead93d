"""Files of one source with different columns: which can be read together, and the types of all.

Source: the rules of reading, "Inference".
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING

from lakewright.errors import LakewrightError
from lakewright.lake.paths import FileEntry
from lakewright.reader.source import Reading, Source
from lakewright.schema.conversion import Conversion, convert, first_of
from lakewright.schema.fault import Owner, all_faults_sql
from lakewright.schema.fits import merge
from lakewright.schema.rules import ValueRules
from lakewright.schema.shape import matched_fields, parts, united
from lakewright.schema.spark import columns_of
from lakewright.schema.sql import name_sql
from lakewright.schema.types import VOID, Struct, StructField, Type
from lakewright.transform.bad_rows import FAULT

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(slots=True)
class Group:
    """Files that are read by one scan.

    Attributes:
        columns: Their columns, with the types in the files.
        files: The files.
    """

    columns: Struct
    files: list[FileEntry]


def grouped(schemas: Iterable[tuple[Struct, Sequence[FileEntry]]]) -> list[Group]:
    """Return files in as few groups as their columns allow; files of a group have equal types in common."""
    groups: list[Group] = []
    for columns, files in schemas:
        for group in groups:
            both = united(group.columns, columns, lambda one, other: one if one == other else None)
            if isinstance(both, Struct):
                group.columns = both
                group.files += files
                break
        else:
            groups.append(Group(columns, list(files)))
    return groups


def merged_columns(source: Source, parts: Iterable[tuple[Struct, FileEntry]]) -> Struct:
    """Return the columns of all parts of a source, with types that hold the values of each.

    Args:
        source: The source.
        parts: The columns of each part, with one of its files.

    Raises:
        LakewrightError: A column has types in two files that no type holds.
    """
    found: dict[str, StructField] = {}
    firsts: dict[str, FileEntry] = {}
    for columns, file in parts:
        for each in columns.fields:
            name = each.name.lower()
            known, first = found.setdefault(name, each), firsts.setdefault(name, file)
            both = merge(known.type, each.type)
            if both is None:
                raise _conflict(source, (known, first), (each, file))
            found[name] = replace(known, type=both)
    return Struct(tuple(found.values()))


def _conflict(
    source: Source, one: tuple[StructField, FileEntry], other: tuple[StructField, FileEntry]
) -> LakewrightError:
    (first, file), (second, other_file) = one, other
    column, left, right = _where(first.name, first.type, second.type)
    return source.error(
        f"column {column!r} is of type {left} in {file.name}, and of type {right} in {other_file.name}",
        "Deliver the files with one type for it",
        is_drift=True,
        column=column,
        types=[left, right],
    )


def _where(place: str, one: Type, other: Type) -> tuple[str, str, str]:
    """Return the place inside a column at which two types differ, with both types there."""
    for step, part, twin in parts(one, other):
        if twin is not None and merge(part, twin) is None:
            return _where(place + step, part, twin)
    return place, one.ddl, other.ddl


def union_of_groups(
    reading: Reading, frames: Sequence[tuple[DataFrame, Struct]], columns: Struct
) -> DataFrame:
    """Return the rows of all groups with the same columns; a value that does not fit fails the query.

    If rows are put aside, the JSON of one with such values is in the reading's column `corrupt`, and the
    values are in the column `FAULT`. Both are left out if all values of the types fit.

    Args:
        reading: What is read.
        frames: The rows of each group, with the columns that they have.
        columns: The columns of all.
    """
    rules, corrupt = ValueRules(reading.known.zone, Owner.SLICE), reading.corrupt

    def converted(own: StructField | None, wanted: StructField) -> Conversion:
        value, kind = ("null", VOID) if own is None else (name_sql(own.name), own.type)
        return convert(value, kind, wanted.type, column=wanted.name, rules=rules)

    if len(frames) == 1 and frames[0][1] == columns:
        return frames[0][0]
    groups = [
        (frame, [*map(converted, matched_fields(own, columns), columns.fields)]) for frame, own in frames
    ]
    keeps = corrupt is not None and any(each.faults for _, made in groups for each in made)
    parts = []
    for frame, made in groups:
        selected = [
            f"{each.sql if keeps else each.strict} as {name_sql(field.name)}"
            for each, field in zip(made, columns.fields, strict=True)
        ]
        if keeps:
            faults = [each for own in made for each in own.faults]
            is_right = f"{first_of(faults) or 'null'} is null"
            selected.append(f"if({is_right}, null, to_json(struct(*))) as {name_sql(corrupt or '')}")
            selected.append(f"{all_faults_sql(faults)} as {FAULT}")
        parts.append(frame.selectExpr(*selected))
    return reduce(lambda one, other: one.unionAll(other), parts)


def read_parts(reading: Reading, parts: Iterable[Sequence[FileEntry]]) -> DataFrame:
    """Return the rows of parts of a source, each read in the types that Spark finds in its first file.

    Args:
        reading: What is read.
        parts: Files with the same columns.

    Raises:
        LakewrightError: A column has types that no type holds.
    """
    frames, firsts = [], []
    for files in parts:
        frame = reading.of(reading.source.only(files)).load()
        columns = Struct(columns_of(frame.schema))
        frames.append((frame, columns))
        firsts.append((columns, files[0]))
    return union_of_groups(reading, frames, merged_columns(reading.source, firsts))
