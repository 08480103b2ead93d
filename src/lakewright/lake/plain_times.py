"""Times without an offset in frames that callers hand over: they are times of the lake's zone."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lakewright.errors import UsageError
from lakewright.schema.sql import name_sql, text_sql
from lakewright.transform.refusals import refusing_sql

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType

__all__ = ["check_plain_times", "with_offsets"]

_PLAIN_TIME = "timestamp_ntz"
_TWICE, _NEVER = "occurs twice", "does not exist"
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
    from pyspark.sql import functions

    instants = {
        field.name: functions.expr(_Instants(field.name, zone).sql(name_sql(field.name), field.dataType))
        for field in frame.schema.fields
        if _PLAIN_TIME in field.dataType.simpleString()
    }
    return frame.withColumns(instants) if instants else frame


@dataclass(frozen=True, slots=True)
class _Instants:
    """SQL of the values of a column, with the times of a zone as instants."""

    column: str
    zone: str

    def sql(self, value: str, kind: DataType, depth: int = 0) -> str:
        """Return a value of a type in SQL with the times inside as instants."""
        from pyspark.sql.types import ArrayType, MapType, StructType

        if _PLAIN_TIME not in kind.simpleString():
            return value
        inner = f"x{depth}"
        if isinstance(kind, StructType):
            parts = (
                f"{text_sql(field.name)}, "
                + self.sql(f"{value}.{name_sql(field.name)}", field.dataType, depth + 1)
                for field in kind.fields
            )
            return f"if({value} IS NULL, NULL, named_struct({', '.join(parts)}))"
        if isinstance(kind, ArrayType):
            return f"transform({value}, {inner} -> {self.sql(inner, kind.elementType, depth + 1)})"
        if isinstance(kind, MapType):
            key = self.sql(f"{inner}.key", kind.keyType, depth + 1)
            held = self.sql(f"{inner}.value", kind.valueType, depth + 1)
            return f"map_from_entries(transform(map_entries({value}), {inner} -> struct({key}, {held})))"
        return self._instant(value)

    def _instant(self, value: str) -> str:
        # With the offsets of a day before and after, a time is one instant, or two, or none.
        one, other = (self._with_offset_of(value, day) for day in (-1, 1))
        is_one, is_other = (f"{self._local(utc)} = {value}" for utc in (one, other))
        return (
            f"CASE WHEN {one} = {other} THEN {_micros(one)} "
            f"WHEN {is_one} AND {is_other} THEN {self._refusal(value, _TWICE)} "
            f"WHEN {is_one} THEN {_micros(one)} WHEN {is_other} THEN {_micros(other)} "
            f"WHEN {value} IS NOT NULL THEN {self._refusal(value, _NEVER)} END"
        )

    def _with_offset_of(self, value: str, days: int) -> str:
        """Return the time in UTC that a time of the zone is with the offset of some days later."""
        then = f"({value} + interval '{days}' day)"
        offset = f"timestampdiff(SECOND, {then}, {self._local(then)})"
        return f"timestampadd(SECOND, -{offset}, {value})"

    def _local(self, utc: str) -> str:
        return f"convert_timezone('UTC', {text_sql(self.zone)}, {utc})"

    def _refusal(self, value: str, why: str) -> str:
        start, end = text_sql(f"column {self.column!r}: "), text_sql(f" {why} in {self.zone}")
        return refusing_sql(f"concat({start}, cast({value} as string), {end})", _REMEDY)


def _micros(utc: str) -> str:
    return f"timestamp_micros(timestampdiff(MICROSECOND, timestamp_ntz'1970-01-01 00:00:00', {utc}))"


def check_plain_times(table: Any, zone: str) -> None:
    """Raise an error if a column of a table of Arrow has a time without an offset that a zone has not once.

    Raises:
        UsageError: With the column and the time.
    """
    import pyarrow as pa  # type: ignore[import-untyped]
    from pyarrow import compute

    for field in table.schema:
        if not pa.types.is_timestamp(field.type) or field.type.tz is not None:
            continue
        try:
            compute.assume_timezone(table[field.name], zone)
        except pa.ArrowInvalid as error:
            if (found := _REFUSED.search(str(error))) is None:
                raise
            why = _TWICE if found[2] == "ambiguous" else _NEVER
            raise UsageError(f"column {field.name!r}: {found[1]} {why} in {zone}", remedy=_REMEDY) from error
