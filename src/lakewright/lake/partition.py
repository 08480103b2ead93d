"""Partitions of a relation: their columns, values and folders.

Values are texts in a canonical form of their type, so that equal partitions have equal texts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime
from functools import reduce
from itertools import product
from operator import and_, or_
from typing import TYPE_CHECKING, TypeAlias

from pydantic import Field as Declared

from lakewright.errors import SpecError
from lakewright.schema.sql import name_sql, text_sql
from lakewright.spark.functions import functions
from lakewright.spec.arguments import expand_range, floor_value
from lakewright.spec.expressions.scope import Scope
from lakewright.spec.expressions.values import Value, parse_value, render_value
from lakewright.spec.models.base import Listed, Model
from lakewright.spec.models.fields import PartitionField
from lakewright.spec.models.job import Parameter
from lakewright.spec.suggestions import suggestion
from lakewright.transform.refusals import refusing_sql
from lakewright.transform.steps import find_name

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


Partition: TypeAlias = Mapping[str, str]
"""Values by column; empty for the whole relation."""

# The characters that Spark escapes in the name of a partition's folder.
_ESCAPED = re.compile("[\x00-\x1f\"#%'*/:=?\\\\\x7f{\\[\\]^]")
_ALONE = "value"
NULL_FOLDER = "__HIVE_DEFAULT_PARTITION__"
"""The value in the name of the folder of rows whose partition column is null or empty."""

_FOLDERS_OF_NULL = frozenset({"", NULL_FOLDER})
"""Values that Hive, Spark and Delta can't tell from null, so that their rows would not be found again."""


class PartitionRange(Model):
    """Values from `start` to `end`, both included."""

    start: str = Declared(description="First value.")
    end: str = Declared(description="Last value, included.")
    step: str | None = Declared(default=None, description="Distance; the column's granularity unless given.")


Selection: TypeAlias = dict[str, PartitionRange | Listed[str]]
"""Values, lists of them or ranges by column, as a project writes them."""


def expand_selection(
    columns: Sequence[PartitionField], selection: Mapping[str, PartitionRange | tuple[str, ...]]
) -> tuple[dict[str, str], ...]:
    """Return every combination of the selected values, in the order of the columns; none if none is selected.

    Raises:
        SpecError: A column isn't one of the relation's, or a value is empty or not of its type.
    """
    by_name = _fields(columns, selection)
    chosen = [(field.name, _values(field, selection[name])) for name, field in by_name.items()]
    if not chosen:
        return ()
    names = [name for name, _ in chosen]
    return tuple(
        dict(zip(names, values, strict=True)) for values in product(*(values for _, values in chosen))
    )


def canonical_partition(columns: Sequence[PartitionField], partition: Partition) -> dict[str, str]:
    """Return the partition with its columns spelled as in the relation and its values in canonical form.

    Raises:
        SpecError: A column isn't one of the relation's, or a value is empty or not of its type.
    """
    by_name = _fields(columns, partition)
    return {field.name: _one(field, partition[name]) for name, field in by_name.items()}


def typed_partition(columns: Iterable[PartitionField], partition: Partition) -> dict[str, Value]:
    """Return the values converted to their types, so that a pattern can format them."""
    types = {field.name: field.value_type for field in columns}
    return {name: parse_value(types[name], text) for name, text in partition.items()}


def typed_columns(columns: Iterable[PartitionField], partition: Partition) -> dict[str, Column]:
    """Return the values as literal columns of their types."""
    from lakewright.lake.columns import cast_column, literal

    types = {field.name: field.type for field in columns}
    return {name: cast_column(literal(text), types[name]) for name, text in partition.items()}


def within_partition(frame: DataFrame, columns: Iterable[PartitionField], partition: Partition) -> DataFrame:
    """Return the rows, whose query fails if one has another value in a column of the partition.

    A write gives all rows the values of the partition, so that rows of others would change their place.
    """
    types = {field.name: field.type.ddl for field in columns}
    for name, text in partition.items():
        own = find_name(frame.columns, name)
        if own is None:
            continue
        value = name_sql(own)
        place = text_sql(f" would be written to {name}={text}")
        row_text = f"concat({text_sql(f'a row of {name}=')}, {value}, {place})"
        refusal = refusing_sql(row_text, f"Filter the mapping by {name}, or drop the column from it.")
        same = f"try_cast({value} as {types[name]}) <=> {_literal_sql(types[name], text)}"
        frame = frame.where(f"if({value} is null or {same}, true, {refusal})")
    return frame


def partition_condition(columns: Iterable[PartitionField], partitions: Iterable[Partition]) -> Column:
    """Return the condition that a row is in one of the partitions; values are compared in their types."""
    from lakewright.lake.columns import column

    fields = list(columns)
    alternatives = [
        reduce(and_, (column(name).eqNullSafe(value) for name, value in typed_columns(fields, each).items()))
        for each in partitions
    ]
    return reduce(or_, alternatives)


def partition_sql(columns: Iterable[PartitionField], partition: Partition) -> str | None:
    """Return the SQL condition that a row is in the partition; None for the whole relation."""
    types = {field.name: field.type.ddl for field in columns}
    conditions = [f"{name_sql(name)} = {_literal_sql(types[name], text)}" for name, text in partition.items()]
    return " AND ".join(conditions) or None


def _literal_sql(type_sql: str, text: str) -> str:
    if type_sql in {"date", "timestamp"}:
        return f"{type_sql.upper()}{text_sql(text)}"
    return text_sql(text) if type_sql == "string" else f"CAST({text_sql(text)} AS {type_sql})"


def partition_folder(partition: Partition) -> str:
    """Return the folder of a partition below its relation's, as Hive and Spark name it.

    Example:
        >>> partition_folder({"year": "2022", "code": "a/b"})
        'year=2022/code=a%2Fb'
    """
    return "/".join(
        f"{_escape(name)}={_escape(value) if value else NULL_FOLDER}" for name, value in partition.items()
    )


def check_in_catalog(partition: Partition) -> None:
    """Check that a catalog can keep a partition, as those of Hive keep one of a table that isn't of Delta.

    They compare names in a database for which spaces at the end do not count.

    Raises:
        SpecError: A value ends with a space.
    """
    for name, value in partition.items():
        if value.endswith(" "):
            raise SpecError.of(
                f"partition column {name}: the value {value!r} {_PADDED}", remedy="Give another value."
            )


_PADDED = "ends with a space; Hive's catalog may take it for the value without the space"


def with_folder_values(
    frame: DataFrame, columns: Iterable[PartitionField], *, is_in_catalog: bool = False
) -> DataFrame:
    """Return the rows, whose query fails if a text would put one into the partition of null.

    If a catalog keeps the partitions, it also fails if a text ends with a space.
    """
    for each in columns:
        if each.type.ddl == "string" and (name := find_name(frame.columns, each.name)) is not None:
            frame = frame.withColumn(
                name,
                functions.expr(_folder_value_sql(each.name, name_sql(name), is_in_catalog=is_in_catalog)),
            )
    return frame


def _folder_value_sql(column: str, value: str, *, is_in_catalog: bool) -> str:
    subject, remedy = f"partition column {column!r}", "Give it another value in the mapping, or null."
    empty = refusing_sql(
        text_sql(f"{subject} has an empty text, which stands for null in folders and in Delta tables"), remedy
    )
    marked = f"{subject} has the text {NULL_FOLDER}, with which a folder is named for null"
    refusals = f"when {text_sql(NULL_FOLDER)} then {refusing_sql(text_sql(marked), remedy)}"
    other = value
    if is_in_catalog:
        padded = refusing_sql(
            f"concat({text_sql(f'{subject}: the text ')}, {value}, {text_sql(f' {_PADDED}')})", remedy
        )
        other = f"if(endswith({value}, ' '), {padded}, {value})"
    return f"case {value} when '' then {empty} {refusals} else {other} end"


def _escape(text: str) -> str:
    return _ESCAPED.sub(lambda found: f"%{ord(found[0]):02X}", text)


def _fields(columns: Sequence[PartitionField], names: Iterable[str]) -> dict[str, PartitionField]:
    by_name = {field.name.lower(): field for field in columns}
    written = {name.lower(): name for name in names}
    for lower, name in written.items():
        if lower not in by_name:
            raise SpecError.of(
                f"{name!r} is not a partition column",
                remedy=suggestion(name, [field.name for field in columns])
                or "The relation has no partition columns.",
            )
    return {written[field.name.lower()]: field for field in columns if field.name.lower() in written}


def _values(field: PartitionField, declared: PartitionRange | tuple[str, ...]) -> list[str]:
    if not isinstance(declared, PartitionRange):
        return list(dict.fromkeys(_one(field, text) for text in declared))
    bounds = {"start": declared.start, "end": declared.end, "step": declared.step}
    given = {bound: text for bound, text in bounds.items() if text is not None}
    try:
        return [_render(value) for value in expand_range(_parameter(field), given)]
    except (ValueError, OverflowError) as error:
        raise SpecError.of(
            f"partition column {field.name}: {error}",
            remedy="Write {start: …, end: …} with values of the column's type.",
        ) from error


def _one(field: PartitionField, text: str) -> str:
    if text in _FOLDERS_OF_NULL:
        what = "an empty text" if not text else f"the text {text}"
        raise SpecError.of(
            f"partition column {field.name}: the value is {what}, which stands for null in folders and in "
            "Delta tables",
            remedy="Give another value.",
        )
    try:
        value = parse_value(field.value_type, text)
        step = _parameter(field).step(Scope())
        return _render(value if step is None else floor_value(value, step))
    except (ValueError, OverflowError) as error:
        raise SpecError.of(f"partition column {field.name}: {error}") from error


def _parameter(field: PartitionField) -> Parameter:
    return Parameter(name=_ALONE, type=field.value_type, granularity=field.granularity)


def _render(value: Value) -> str:
    if isinstance(value, datetime):
        local = value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
        return local.isoformat(sep=" ")
    return value.isoformat() if isinstance(value, date) else render_value(value)
