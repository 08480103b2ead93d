"""The processing time of a slice that is the latest value of one of its columns.

It follows from the slice's files alone, so that the slice gets the same time however often it is processed.
The setting `time: {from: COLUMN}` is Lakewright's own.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from lakewright.errors import SchemaDriftError, SliceError
from lakewright.manifest.payload import MAY_SKIP
from lakewright.manifest.record import parse_instant_in
from lakewright.schema.sql import name_sql
from lakewright.slices.processing_time import TICK
from lakewright.slices.quarantine import name_bad_rows
from lakewright.slices.reading import read_slice
from lakewright.spec.models.entity import TIMES
from lakewright.strategies.failures import translate_error
from lakewright.strategies.schema_fit import fit_slice
from lakewright.transform.required_columns import lacking_setting_error
from lakewright.transform.steps import find_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

    from lakewright.lake.lake import Lake
    from lakewright.slices.chain import SliceChain
    from lakewright.slices.discovery import Slice
    from lakewright.spec.models.entity import Entity
    from lakewright.strategies.slice_load import LoadRequest


BEFORE_ALL = datetime(1970, 1, 1, tzinfo=UTC)
"""The time of a slice that is not known yet, or of a first slice without rows, at which no version begins."""


def latest_in_slice(
    lake: Lake,
    session: SparkSession,
    entity: Entity,
    slice_: Slice,
    column: str,
    *,
    request: LoadRequest,
    note: Callable[[str], None] = lambda _: None,
) -> datetime | None:
    """Return the latest value of a column in the rows of a slice that are not put aside; None without rows.

    Dates, and times without a zone, are in the lake's zone, or in UTC if the entity says so.

    Args:
        lake: The lake.
        session: A strict session.
        entity: The entity.
        slice_: The slice.
        column: The column, by its name in the source or in silver.
        request: The request to process the slice, whose time does not matter.
        note: Receives what a user must know of columns that are left out.

    Raises:
        SchemaDriftError: The slice lacks the column, or its values are no dates or times.
        SliceError: The column is null in all rows.
        LakewrightError: The slice can't be read.
    """
    try:
        frame = read_slice(lake, session, slice_, entity, note=note)
        prepared = fit_slice(lake, session, entity, frame, request).prepared
        rows = prepared.frame if prepared.ranked is None else prepared.ranked
        name = find_name(rows.columns, entity.silver_name(column))
        if name is None:
            raise lacking_setting_error(frame.columns, column, "time")
        naive = entity.settings.naive_zone(lake.settings.timezone)
        zone = lake.settings.zone if naive is None else ZoneInfo(naive)
        return _latest(rows, name, slice_, zone)
    except Exception as error:
        ours = translate_error(error, entity, slice_.name)
        named = name_bad_rows(ours, slice_, request, lake=lake, session=session, entity=entity)
        if named is error:
            raise
        raise named from error


def _latest(rows: DataFrame, name: str, slice_: Slice, zone: ZoneInfo) -> datetime | None:
    kind, latest = rows.schema[name].dataType.simpleString(), f"max({name_sql(name)})"
    if kind not in TIMES:
        raise SchemaDriftError(
            f"time: the column {name!r} of the slice {slice_.name} has the type {kind}, which is no time",
            remedy="Declare its type in `columns` as date or timestamp, or name another column.",
            details={"column": name, MAY_SKIP: True},
            subject=slice_.name,
        )
    value = f"unix_micros({latest})" if kind == "timestamp" else f"cast({latest} as string)"
    (row,) = rows.selectExpr("count(1) records", f"{value} latest").collect()
    if not row["records"]:
        return None
    at = None if row["latest"] is None else _instant(row, zone)
    if at is None:
        is_null = row["latest"] is None
        why = "is null in all rows" if is_null else f"has the latest value {row['latest']}, out of range"
        raise SliceError(
            f"time: the column {name!r} of the slice {slice_.name} {why}, so that the slice has no time",
            remedy="Correct the slice, or name another column.",
            details={"column": name, "path": slice_.path, MAY_SKIP: True},
            subject=slice_.name,
        )
    return at


def _instant(row: Row, zone: ZoneInfo) -> datetime | None:
    """Return the latest value, which is microseconds since 1970 or a text, as an instant in UTC."""
    latest = row["latest"]
    if isinstance(latest, str):
        return parse_instant_in(latest, zone)
    with suppress(OverflowError):
        return BEFORE_ALL + timedelta(microseconds=latest)
    return None


def time_without_rows(chain: SliceChain, before: datetime | None = None) -> datetime:
    """Return the time of a slice without rows: just after the slice before, by default the last one."""
    last = before or next((each.at for each in reversed(chain.order) if each.at is not None), None)
    return BEFORE_ALL if last is None else last + TICK
