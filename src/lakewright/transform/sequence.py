"""The order in which the states of a record follow each other, by the entity's `sequence_by`.

A row replaces another one of the same key only if its value is greater or equal. A row without a value is
older than every row that has one. `sequence_by` and `duplicates` are Lakewright's own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakewright.errors import SchemaDriftError
from lakewright.schema.sql import name_sql
from lakewright.transform.steps import with_columns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType

    from lakewright.transform.system_columns import SystemColumns


IS_KEPT = "_lakewright_kept"
"""Whether a row is the one of its key that is used."""

IS_LATEST = "_lakewright_latest"
"""Whether no row of the same key has a greater value."""

_ORDERED = frozenset(
    (
        *("tinyint", "smallint", "int", "bigint", "float", "double", "decimal"),
        *("string", "date", "timestamp", "timestamp_ntz", "boolean"),
    )
)


def check_sequence_type(column: str, kind: DataType) -> None:
    """Raise `SchemaDriftError` unless values of the type of `sequence_by` can be compared."""
    name = kind.simpleString()
    if name.partition("(")[0] not in _ORDERED:
        raise SchemaDriftError(
            f"sequence_by: the column {column!r} has the type {name}, whose values have no order",
            remedy="Name a column with numbers, dates, times or texts.",
            details={"column": column},
        )


def rank_by_sequence(frame: DataFrame, system: SystemColumns, sequence: str) -> DataFrame:
    """Return the frame with `IS_KEPT` and `IS_LATEST`; of equal latest rows, one is kept."""
    key, hash_, deleted = (name_sql(name) for name in (system.key, system.hash, system.deleted))
    order = f"partition by {key} order by {name_sql(sequence)} desc nulls last"
    ranks = {
        IS_LATEST: f"rank() over ({order}) = 1",
        IS_KEPT: f"row_number() over ({order}, {hash_}, {deleted}) = 1",
    }
    return with_columns(frame, ranks)


def kept_rows(ranked: DataFrame) -> DataFrame:
    """Return the rows that `rank_by_sequence` keeps, without its columns."""
    return ranked.where(IS_KEPT).drop(IS_KEPT, IS_LATEST)


def is_outdated_sql(value: str, present: str) -> str:
    """Return SQL of whether a row with one value of `sequence_by` loses to the present row with another.

    Example:
        >>> is_outdated_sql("s", "t")
        '(t is not null and not coalesce(s >= t, false))'
    """
    return f"({present} is not null and not coalesce({value} >= {present}, false))"
