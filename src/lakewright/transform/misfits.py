"""Rows whose values do not fit a column of JSON, known when the slice is read.

Spark infers a text for a column in which one value is a text. The values of other rows are read as without
that one, and the column `MISFIT` tells which rows have such a value. Putting them aside is Lakewright's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from lakewright.transform.bad_rows import UNPARSED, bad_rows
from lakewright.transform.casts import cast_fault_sql
from lakewright.transform.sql import name_sql, text_sql

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType

__all__ = ["MISFIT", "Misfit", "misfit_rows", "misfit_sql"]

MISFIT = "_lakewright_misfit"
"""Column that is null except in rows with such a value: why, whether a type is declared, and their texts."""


class Misfit(NamedTuple):
    """A column with values that may not fit.

    Attributes:
        column: Its name in the source.
        text: SQL of a value as text.
        condition: SQL of whether it does not fit.
        target: The type that it does not fit, in Spark's SQL.
        of_table: The name of the table's column whose type that is; None if it is the declared type.
    """

    column: str
    text: str
    condition: str
    target: str
    of_table: str | None = None

    @property
    def reason(self) -> str:
        """SQL of the reason; null if the value fits."""
        is_of_table = self.of_table is not None
        name = self.of_table or self.column
        fault = cast_fault_sql(self.text, _text_type(), self.target, column=name, is_exact=is_of_table)
        return f"if({self.condition}, coalesce({fault}, '{UNPARSED}'), null)"


def misfit_sql(misfits: Sequence[Misfit]) -> str:
    """Return SQL of the column `MISFIT`."""
    declared = [each.condition for each in misfits if each.of_table is None]
    texts = ", ".join(f"{text_sql(each.column)}, if({each.condition}, {each.text}, null)" for each in misfits)
    return (
        f"if({' or '.join(each.condition for each in misfits)}, "
        f"named_struct('reason', coalesce({', '.join(each.reason for each in misfits)}, null), "
        f"'is_declared', {' or '.join(declared) or 'false'}, 'texts', named_struct({texts})), null)"
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
    texts = frame.select(f"{MISFIT}.texts.*").columns
    shown = frame.withColumns({name: functions.expr(_original(name)) for name in texts})
    found = bad_rows(shown, [fault], keys, {name: name for name in names})
    return found, frame.where(f"{MISFIT} is null or {_is_harmless(flag)}").drop(MISFIT)


def _original(name: str) -> str:
    value = name_sql(name)
    return f"coalesce({MISFIT}.texts.{value}, cast({value} as string))"


def _is_harmless(flag: str | None) -> str:
    if flag is None:
        return "false"
    deleted = f"coalesce(try_cast(cast({name_sql(flag)} as string) as boolean), false)"
    return f"(not {MISFIT}.is_declared and {deleted})"


def _text_type() -> DataType:
    from pyspark.sql.types import StringType

    return StringType()
