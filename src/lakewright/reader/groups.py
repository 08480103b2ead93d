"""Files of one source with different columns: which can be read together, and the types of all.

Source: the rules of reading, "Inference".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import TYPE_CHECKING

from lakewright.errors import LakewrightError
from lakewright.lake.paths import FileEntry
from lakewright.reader.source import Reading, Source
from lakewright.schema.conversion import Conversion, convert, first_of
from lakewright.schema.fault import Owner, all_faults_sql
from lakewright.schema.fits import merge
from lakewright.schema.rules import ValueRules
from lakewright.schema.shape import parts, united
from lakewright.schema.spark import type_of
from lakewright.schema.sql import name_sql
from lakewright.schema.types import Struct, StructField, Type
from lakewright.transform.bad_rows import FAULT

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(slots=True)
class Group:
    """Files that are read by one scan.

    Attributes:
        columns: Their columns by names in lower case, with the types in the files.
        files: The files.
    """

    columns: dict[str, StructField] = field(default_factory=dict)
    files: list[FileEntry] = field(default_factory=list)


def grouped(schemas: Iterable[tuple[Struct, Sequence[FileEntry]]]) -> list[Group]:
    """Return files in as few groups as their columns allow; files of a group have equal types in common."""
    groups: list[Group] = []
    for columns, files in schemas:
        for group in groups:
            both = united(Struct(tuple(group.columns.values())), columns, _same)
            if isinstance(both, Struct):
                group.columns = {each.name.lower(): each for each in both.fields}
                group.files += files
                break
        else:
            groups.append(Group({each.name.lower(): each for each in columns.fields}, list(files)))
    return groups


def _same(one: Type, other: Type) -> Type | None:
    return one if one == other else None


def columns_of(
    source: Source, groups: Sequence[Group], true_type: Callable[[Type], Type]
) -> dict[str, StructField]:
    """Return the columns of all groups, with types that hold the values of each, by names in lower case.

    Args:
        source: The source.
        groups: The groups of its files.
        true_type: Returns the type that values of a type in a file have after they were read.

    Raises:
        LakewrightError: A column has types in two files that no type holds.
    """
    found: dict[str, StructField] = {}
    firsts: dict[str, FileEntry] = {}
    for group in groups:
        for name, each in group.columns.items():
            kind = true_type(each.type)
            known = found.get(name)
            both = kind if known is None else merge(known.type, kind)
            if known is not None and both is None:
                raise _conflict(source, (known, firsts[name]), (replace(each, type=kind), group.files[0]))
            firsts.setdefault(name, group.files[0])
            found[name] = replace(known or each, type=both or kind)
    return found


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
    reading: Reading,
    frames: Sequence[tuple[DataFrame, dict[str, StructField]]],
    columns: dict[str, StructField],
) -> DataFrame:
    """Return the rows of all groups with the same columns; a value that does not fit fails the query.

    If rows are put aside, the JSON of one with such values is in the reading's column `corrupt`, and the
    values are in the column `FAULT`. Both are left out if all values of the types fit.

    Args:
        reading: What is read.
        frames: The rows of each group, with the types that they have.
        columns: The columns of all, by names in lower case.
    """
    rules, corrupt = ValueRules(reading.known.zone, Owner.SLICE), reading.corrupt

    def converted(own: dict[str, StructField]) -> dict[str, Conversion]:
        return {
            name: convert(name_sql(found.name), found.type, each.type, column=each.name, rules=rules)
            for name, each in columns.items()
            if (found := own.get(name)) is not None
        }

    if len(frames) == 1 and frames[0][1] == columns:
        return frames[0][0]
    groups = [(frame, converted(own)) for frame, own in frames]
    keeps = corrupt is not None and any(each.faults for _, made in groups for each in made.values())
    parts = []
    for frame, made in groups:
        values = {name: each.sql if keeps else each.strict for name, each in made.items()}
        selected = [
            f"{values.get(name, f'cast(null as {each.type.ddl})')} as {name_sql(each.name)}"
            for name, each in columns.items()
        ]
        if keeps:
            faults = [each for own in made.values() for each in own.faults]
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
    frames, groups = [], []
    for files in parts:
        frame = reading.of(reading.source.only(files)).load()
        kind = type_of(frame.schema)
        fields = kind.fields if isinstance(kind, Struct) else ()
        groups.append(Group({each.name.lower(): each for each in fields}, list(files)))
        frames.append((frame, groups[-1].columns))
    return union_of_groups(reading, frames, columns_of(reading.source, groups, lambda kind: kind))
