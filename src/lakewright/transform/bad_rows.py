"""Bad rows of a slice: rows that do not parse, lack a value in their key, or do not fit a type.

They are found before the common pipeline would fail because of them. Putting them aside is Lakewright's own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from lakewright.schema.fault import Reason, all_faults_sql, fault_sql
from lakewright.schema.sql import name_sql
from lakewright.transform.row_values import object_sql

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType


CORRUPT = "_lakewright_corrupt_record"
"""Column with the text of a row that does not parse; null in all other rows."""

NO_COLUMN = "_lakewright_no_column"
"""The only other column of a slice of which no row parses."""

FAULT = "_lakewright_fault"
"""Column with the faults of a row; of rows in `CORRUPT`, if they parse and do not fit the types of others."""


def unparsed_rows(frame: DataFrame) -> DataFrame | None:
    """Return the rows that do not parse, as `bad_rows` does; None if the frame shows none."""
    if CORRUPT not in frame.columns:
        return None
    fault = fault_sql(Reason.UNPARSED)
    return frame.where(f"{CORRUPT} is not null").selectExpr(
        f"{f'coalesce({FAULT}, {fault})' if FAULT in frame.columns else fault} as fault",
        "input_file_name() as file",
        "cast(null as string) as key",
        f"concat({CORRUPT}, {_nothing(frame)}) as record",
    )


def parsed_rows(frame: DataFrame) -> DataFrame:
    """Return the rows that parse, without the columns of others."""
    if CORRUPT not in frame.columns:
        return frame
    return frame.where(f"{CORRUPT} is null and {_nothing(frame)} = ''").drop(CORRUPT, NO_COLUMN, FAULT)


def _nothing(frame: DataFrame) -> str:
    """Return SQL of an empty text that refers to all columns.

    Spark refuses queries over `CORRUPT` alone. It parses only the columns of JSON that a query needs, so that
    a query over some of them takes a row with a value of another type for a right one.
    """
    others = ", ".join(f"{name_sql(name)} is null" for name in frame.columns if name != CORRUPT)
    return f"left(to_json(array({others})), 0)"


def bad_rows(
    frame: DataFrame, faults: Sequence[str], keys: Sequence[str], delivered: Mapping[str, str]
) -> DataFrame | None:
    """Return the rows with a fault, or None if there are no faults to look for.

    The columns are `fault`, `file`, `key` and `record`, all texts; all but the file are JSON, of which the
    first has a line for each of the row's first faults.

    Args:
        frame: The rows.
        faults: SQL of each fault.
        keys: Columns of the business key.
        delivered: Columns of the source, which make up the record, to their names in the frame.
    """
    if not faults:
        return None
    kinds = {field.name: field.dataType for field in frame.schema.fields}
    record = ((own, name_sql(name), kinds[name]) for own, name in delivered.items() if name in kinds)
    found = frame.selectExpr("*", f"{all_faults_sql(faults)} as {FAULT}")
    key = [_key_column(frame, name) for name in keys]
    return found.where(f"{FAULT} is not null").selectExpr(
        f"{FAULT} as fault",
        "input_file_name() as file",
        f"{object_sql(key, has_nulls=False) if key else 'cast(null as string)'} as key",
        f"{object_sql(record, has_nulls=False)} as record",
    )


def _key_column(frame: DataFrame, name: str) -> tuple[str, str, DataType]:
    """Return a column of the key, for `object_sql`; a decimal is a text, which keeps its digits."""
    from pyspark.sql.types import DecimalType

    value = name_sql(name)
    kind = frame.select(value).schema[0].dataType
    return name, f"cast({value} as string)" if isinstance(kind, DecimalType) else value, kind


def without_bad_rows(frame: DataFrame, faults: Sequence[str]) -> DataFrame:
    """Return the rows without a fault."""
    return frame.where(f"coalesce({', '.join(faults)}, null) is null") if faults else frame
