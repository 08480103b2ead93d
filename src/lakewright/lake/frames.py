"""Frames that are handed to callers, and those that callers hand over: pandas, Polars or Arrow."""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol, TypeGuard

from lakewright.errors import NotInstalled, UsageError
from lakewright.lake.cluster import has_python_functions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = [
    "SupportsArrow",
    "active_session",
    "arrow_table",
    "check_names",
    "created_frame",
    "frame_in",
    "holds_arrow",
]

log = logging.getLogger(__name__)

_ZONE = "spark.sql.session.timeZone"

_UNNAMED_INDEX = re.compile(r"__index_level_\d+__")
"""Names that pandas gives to the columns of an index without a name."""


_creating = threading.RLock()
"""Held while a session is the active one: PySpark's is one for all threads."""


class SupportsArrow(Protocol):
    """A frame that hands out its rows by Arrow's interface, as those of pandas, Polars and pyarrow do."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return the rows as a capsule with a stream of Arrow."""
        ...


def frame_in(session: SparkSession, frame: DataFrame) -> DataFrame:
    """Return a frame as one of another session of the same application, without computing anything.

    Expressions keep the settings that they were analysed with, such as time zone and ANSI mode. Python
    functions do not: a frame with such functions stays in its session if the time zones differ. A temporary
    view that is made of the frame belongs to the session. PySpark has no such method: a view of a frame that
    came from a new session could not be found by `spark.sql` of the caller's.
    """
    if frame.sparkSession is session or not hasattr(session, "_jsparkSession"):
        return frame
    own, zone = frame.sparkSession.conf.get(_ZONE), session.conf.get(_ZONE)
    if own != zone and has_python_functions(frame):
        log.warning(
            "the frame has Python functions, which compute with times of the session's zone: it stays in a "
            "session of %s, as in a run, and your session of %s sees no temporary view of it",
            *(own, zone),
        )
        return frame
    from pyspark.sql.classic.dataframe import DataFrame as ClassicFrame

    java: Any = session
    plan = frame._jdf.queryExecution().analyzed()
    moved = java._jvm.org.apache.spark.sql.classic.Dataset.ofRows(java._jsparkSession, plan)
    return ClassicFrame(moved, session)


def created_frame(session: SparkSession, rows: Any, schema: Any = None) -> DataFrame:
    """Return a frame of rows that Python has; the active session stays what it was.

    `createDataFrame` makes its session the active one, so that a notebook would go on in ours.
    """
    with _kept_active(session):
        return session.createDataFrame(rows, schema)


@contextmanager
def active_session(session: SparkSession) -> Iterator[None]:
    """Make a session the active one in the `with` block, where code of users may ask for it."""
    from pyspark.sql import SparkSession as Sessions

    java: Any = session
    with _kept_active(session):
        if hasattr(session, "_jsparkSession"):
            Sessions._activeSession = session
            java._jvm.org.apache.spark.sql.classic.SparkSession.setActiveSession(java._jsparkSession)
        yield


@contextmanager
def _kept_active(session: SparkSession) -> Iterator[None]:
    """Set the active session back after the `with` block."""
    from pyspark.sql import SparkSession as Sessions

    if not hasattr(session, "_jsparkSession"):
        yield
        return
    java: Any = session._jvm
    sessions = java.org.apache.spark.sql.classic.SparkSession
    with _creating:
        before, of_thread = Sessions._activeSession, sessions.getActiveSession()
        try:
            yield
        finally:
            Sessions._activeSession = before
            if of_thread.isDefined():
                sessions.setActiveSession(of_thread.get())
            else:
                sessions.clearActiveSession()


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
