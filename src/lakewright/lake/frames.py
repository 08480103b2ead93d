"""Frames that are handed to callers, and those that callers hand over: pandas, Polars or Arrow.

Times without an offset in frames that callers hand over are times of the lake's zone.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypeGuard

from lakewright.errors import NotInstalled, UsageError
from lakewright.lake.cluster import has_python_functions
from lakewright.schema.scalars import utc_sql
from lakewright.schema.shape import rebuilt_sql
from lakewright.schema.spark import type_of
from lakewright.schema.sql import name_sql, text_sql
from lakewright.spark.engine import engine_of, jvm_of
from lakewright.spark.functions import functions
from lakewright.transform.refusals import refusing_sql

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import DataType

    from lakewright.schema.types import Type


log = logging.getLogger(__name__)

_ZONE = "spark.sql.session.timeZone"

_UNNAMED_INDEX = re.compile(r"__index_level_\d+__")
"""Names that pandas gives to the columns of an index without a name."""


class SupportsArrow(Protocol):
    """A frame that hands out its rows by Arrow's interface, as those of pandas, Polars and pyarrow do."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return the rows as a capsule with a stream of Arrow."""


def frame_in(session: SparkSession, frame: DataFrame) -> DataFrame:
    """Return a frame as one of another session of the same application, without computing anything.

    Expressions keep the settings that they were analysed with, such as time zone and ANSI mode. Python
    functions do not: a frame with such functions stays in its session if the time zones differ. A temporary
    view that is made of the frame belongs to the session. PySpark has no such method: a view of a frame that
    came from a new session could not be found by `spark.sql` of the caller's.
    """
    jvm = jvm_of(session)
    if frame.sparkSession is session or jvm is None:
        return frame
    own, zone = frame.sparkSession.conf.get(_ZONE), session.conf.get(_ZONE)
    if own != zone and has_python_functions(frame):
        log.warning(
            "the frame has Python functions, which compute with times of the session's zone: it stays in a "
            "session of %s, as in a run, and your session of %s sees no temporary view of it",
            *(own, zone),
        )
        return frame
    return jvm.moved(frame, session)


def created_frame(session: SparkSession, rows: Any) -> DataFrame:
    """Return a frame of rows that Python has; the active session stays what it was.

    `createDataFrame` makes its session the active one, so that a notebook would go on in ours.
    """
    with engine_of(session).kept_active(session):
        return session.createDataFrame(rows)


def empty_frame(session: SparkSession, types: Iterable[tuple[str, str | DataType]]) -> DataFrame:
    """Return a frame without rows, with columns of these names and types."""
    null = functions.lit(None)
    return session.range(0).select(*(null.cast(kind).alias(name) for name, kind in types))


def frame_of_texts(
    session: SparkSession, names: Sequence[str], rows: Sequence[Sequence[str | None]]
) -> DataFrame:
    """Return a frame of rows of texts, in their order.

    The rows are one literal of the plan. `createDataFrame` would pass them through a Python process of
    Spark's, which takes longer to start than the rows take, and may end while it is in use.
    """
    texts = functions.from_json(functions.lit(json.dumps(rows)), "array<array<string>>")
    found = session.range(1).select(functions.explode(texts).alias("row"))
    return found.select(*(found["row"][index].alias(name) for index, name in enumerate(names)))


def holds_arrow(rows: object) -> TypeGuard[SupportsArrow]:
    """Return whether an object hands out its rows by Arrow's interface."""
    return hasattr(rows, "__arrow_c_stream__")


def check_names(names: Sequence[str]) -> None:
    """Raise an error if columns have the same name, but for case, as neither files nor tables may.

    Raises:
        UsageError: With these names.
    """
    lower = [name.lower() for name in names]
    doubled = sorted({name for name in lower if lower.count(name) > 1})
    if doubled:
        raise UsageError(
            f"the frame has several columns of the name {', '.join(doubled)}",
            remedy="Rename or drop all but one of each; names that differ only in case count as the same.",
        )


def arrow_table(rows: SupportsArrow) -> Any:
    """Return the rows of a frame as a `pyarrow.Table` of types that Spark takes.

    Missing values are null. An index of pandas with a name is a column; one without a name is left out.

    Raises:
        NotInstalled: There is no pyarrow.
        UsageError: A column holds values of several types, or of one that no table has, times with an offset
            beside times without one, or several columns have the same name.
    """
    try:
        import pyarrow as pa  # type: ignore[import-untyped]
    except ImportError as error:
        raise NotInstalled(
            f"pyarrow is not installed, which the rows of a {type(rows).__name__} need",
            remedy="Run `pip install pyarrow pandas`, or make a DataFrame of Spark from Python's own rows.",
        ) from error
    _check_texts(rows)
    _check_offsets(rows)
    try:
        # Polars' own conversion has texts that pyarrow can cast inside of categories; its stream has not.
        table = pa.table(rows.to_arrow() if hasattr(rows, "to_arrow") else rows)
    except (pa.ArrowException, ValueError) as error:
        raise UsageError(
            f"the {type(rows).__name__} can't be read: {'; '.join(map(str, error.args))}",
            remedy="Give each column a name of its own and values of one type.",
        ) from error
    check_names(table.column_names)
    kept = [name for name in table.column_names if not _UNNAMED_INDEX.fullmatch(name)]
    table = table.select(kept)
    _check_types(pa, table.schema)
    return table.cast(pa.schema([field.with_type(_spark_type(pa, field.type)) for field in table.schema]))


def _is_of_pandas(rows: object) -> bool:
    return type(rows).__module__.startswith("pandas")


def _check_texts(rows: SupportsArrow) -> None:
    """Raise an error if columns of pandas have names that are neither all texts nor all numbers.

    Raises:
        UsageError: With the first name that is no text.
    """
    if not _is_of_pandas(rows):
        return
    names = list(getattr(rows, "columns", ()))
    odd = [name for name in names if not isinstance(name, str)]
    if odd and not all(isinstance(name, int) for name in names):
        raise UsageError(
            f"the frame has a column with the name {odd[0]!r}, which is no text",
            remedy="Give the columns names that are texts.",
        )


def _check_offsets(rows: SupportsArrow) -> None:
    """Raise an error if a column of pandas has times with an offset beside times without one.

    pyarrow takes the first value's kind for all: the others would be times of another zone.

    Raises:
        UsageError: With the first such column, or what is inside of it.
    """
    if not _is_of_pandas(rows) or not hasattr(rows, "columns"):
        return
    from pandas.api.types import infer_dtype

    frame: Any = rows
    for position, dtype in enumerate(frame.dtypes):
        column = frame.iloc[:, position]
        if str(dtype) != "object" or infer_dtype(column, skipna=True) not in ("datetime", "mixed"):
            continue
        found: dict[str, bool] = {}
        for value in column:
            for path, has_offset in _times(value, str(column.name)):
                if found.setdefault(path, has_offset) != has_offset:
                    raise UsageError(
                        f"column {path!r} has times with an offset beside times without one",
                        remedy="Give all of them offsets, as `dt.tz_localize` does before frames are joined, "
                        "or none.",
                    )


def _times(value: Any, path: str) -> Iterator[tuple[str, bool]]:
    """Yield the path of each time in a value, with whether it has an offset."""
    if isinstance(value, datetime):
        if value == value:  # noqa: PLR0124 - NaT is not
            yield path, value.tzinfo is not None
    elif isinstance(value, dict):
        for name, each in value.items():
            yield from _times(each, f"{path}.{name}")
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _times(each, f"{path}[]")
    elif type(value).__module__ == "numpy" and hasattr(value, "tolist"):
        yield from _times(list(value.flat), path)


def _check_types(pa: Any, schema: Any) -> None:
    """Raise an error if a column has a type that no table has.

    Raises:
        UsageError: With the first such column.
    """
    for field in schema:
        if (what := _unknown(pa, field.type)) is not None:
            raise UsageError(
                f"column {field.name!r} has {what}, which no table holds",
                remedy="Convert it, such as to texts, or drop it.",
            )


def _unknown(pa: Any, kind: Any) -> str | None:
    """Return what values of a type are that no table has, also inside of others; None if a table has them."""
    if pa.types.is_time(kind):
        return "times of day"
    if isinstance(kind, pa.BaseExtensionType):
        return f"values of the type {kind}"
    inner = (kind.field(index).type for index in range(kind.num_fields))
    return next((found for each in inner if (found := _unknown(pa, each)) is not None), None)


def _spark_type(pa: Any, kind: Any) -> Any:
    """Return the type that Spark reads instead of one which it doesn't know; others stay."""
    types = pa.types
    if types.is_dictionary(kind):
        return _spark_type(pa, kind.value_type)
    if types.is_list(kind) or types.is_large_list(kind):
        return pa.list_(kind.value_field.with_type(_spark_type(pa, kind.value_type)))
    if types.is_struct(kind):
        return pa.struct([field.with_type(_spark_type(pa, field.type)) for field in kind])
    known = {
        pa.uint8(): pa.int16(),
        pa.uint16(): pa.int32(),
        pa.uint32(): pa.int64(),
        pa.uint64(): pa.decimal128(20),
        pa.string_view(): pa.string(),
        pa.binary_view(): pa.binary(),
    }
    return known.get(kind, kind)


_REMEDY = (
    "Give the column times with their offsets: a `timestamp` in Spark; in pandas, `dt.tz_localize` with "
    "`ambiguous` and `nonexistent`."
)
_REFUSED = re.compile(r": (\d\S+ [\d:]+)\S* is (ambiguous|in a gap)")


def with_offsets(frame: DataFrame, zone: str) -> DataFrame:
    """Return a frame whose times without an offset, as of this zone, are instants, nested ones too.

    The time zones of the frame's session and of what reads it make no difference. A time that the zone has
    twice or not at all, where clocks are put back or forward, fails the query.
    """
    instants = {}
    for field in frame.schema.fields:
        own, change = name_sql(field.name), partial(_instant_sql, field.name, zone)
        if (sql := rebuilt_sql(own, type_of(field.dataType), change)) != own:
            instants[field.name] = functions.expr(sql)
    return frame.withColumns(instants) if instants else frame


def _instant_sql(column: str, zone: str, value: str, kind: Type, *_: object) -> str | None:
    """Return SQL of a time of a column without an offset as an instant; None for another value."""
    if kind.ddl != "timestamp_ntz":
        return None
    # A cast would take the zone of the session.
    epoch = "timestamp_ntz'1970-01-01 00:00:00'"
    instant = f"timestamp_micros(timestampdiff(MICROSECOND, {epoch}, {utc_sql(value, zone)}))"
    start, end = text_sql(f"column {column!r}: "), text_sql(f" occurs twice or does not exist in {zone}")
    refusal = refusing_sql(f"concat({start}, cast({value} as string), {end})", _REMEDY)
    return f"if({value} is null, null, coalesce({instant}, {refusal}))"


def check_plain_times(table: Any, zone: str) -> None:
    """Raise an error if a column of a table of Arrow has a time without an offset that a zone has not once.

    Raises:
        UsageError: With the column and the time.
    """
    import pyarrow as pa
    from pyarrow import compute

    for field in table.schema:
        if not pa.types.is_timestamp(field.type) or field.type.tz is not None:
            continue
        try:
            compute.assume_timezone(table[field.name], zone)
        except pa.ArrowInvalid as error:
            if (found := _REFUSED.search(str(error))) is None:
                raise
            why = "occurs twice" if found[2] == "ambiguous" else "does not exist"
            raise UsageError(f"column {field.name!r}: {found[1]} {why} in {zone}", remedy=_REMEDY) from error
