"""Rows whose values do not fit a column of JSON, known when the slice is read.

Spark infers a text for a column, or a part of one, in which one value is a text. The values of other rows are
read as without that one, and the column `MISFIT` tells which rows have such a value. Putting them aside is
Lakewright's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from lakewright.schema.sql import name_sql, text_sql
from lakewright.transform.bad_rows import bad_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructField

__all__ = ["MISFIT", "Misfit", "misfit_rows", "misfit_sql"]

MISFIT = "_lakewright_misfit"
"""Column that is null except in rows with such a value: why, whether a type is declared, and what to show."""


class Misfit(NamedTuple):
    """A column with values that may not fit.

    Attributes:
        column: Its name in the source.
        fault: SQL of why a value does not fit; null if it does.
        shown: SQL of what the record of a bad row shows: a text, or null for the value itself; or a struct or
            list.
        is_declared: Whether the type is declared; otherwise it is that of the table.
    """

    column: str
    fault: str
    shown: str
    is_declared: bool


def misfit_sql(misfits: Sequence[Misfit]) -> str:
    """Return SQL of the column `MISFIT`."""
    reason = f"coalesce({', '.join(each.fault for each in misfits)}, null)"
    declared = " or ".join(f"{each.fault} is not null" for each in misfits if each.is_declared)
    shown = {each.column: f"{text_sql(each.column)}, {each.shown}" for each in misfits}
    return (
        f"if({reason} is null, null, named_struct('reason', {reason}, 'is_declared', {declared or 'false'}, "
        f"'shown', named_struct({', '.join(shown.values())})))"
    )


def misfit_rows(
    frame: DataFrame, keys: Sequence[str], flag: str | None
) -> tuple[DataFrame | None, DataFrame]:
    """Return the rows with such a value, as `bad_rows` does, and the other rows without the column `MISFIT`.

    Args:
        frame: The rows as they were read.
        keys: Columns of the business key, by their names in the source.
        flag: The column with the deleted flag, if the slice has one. Records that arrive deleted may have
            values that do not fit the table.
    """
    from pyspark.sql import functions

    if MISFIT not in frame.columns:
        return None, frame
    fault = f"if({_is_harmless(flag)}, null, {MISFIT}.reason)"
    names = [name for name in frame.columns if name != MISFIT]
    kinds = frame.select(f"{MISFIT}.shown.*").schema.fields
    shown = frame.withColumns({each.name: functions.expr(_original(each)) for each in kinds})
    found = bad_rows(shown, [fault], keys, {name: name for name in names})
    return found, frame.where(f"{MISFIT} is null or {_is_harmless(flag)}").drop(MISFIT)


def _original(shown: StructField) -> str:
    from pyspark.sql.types import StringType

    value = name_sql(shown.name)
    original = f"{MISFIT}.shown.{value}"
    is_text = isinstance(shown.dataType, StringType)
    return f"coalesce({original}, cast({value} as string))" if is_text else original


def _is_harmless(flag: str | None) -> str:
    if flag is None:
        return "false"
    deleted = f"coalesce(try_cast(cast({name_sql(flag)} as string) as boolean), false)"
    return f"(not {MISFIT}.is_declared and {deleted})"
