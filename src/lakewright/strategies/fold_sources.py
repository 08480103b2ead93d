"""The slices of a fold, read and prepared: each fits the table that those before it leave.

Source: `processing-strategies.md`, "Common Processing Pipeline" and "Schema Drift"; that several slices are
prepared together is Lakewright's own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING

from lakewright.schema.convert import convert
from lakewright.schema.shape import plain_type
from lakewright.schema.spark import column_types, type_of
from lakewright.schema.sql import name_sql, text_sql
from lakewright.spec.models.entity import Strategy
from lakewright.strategies.bad_rows import BadRow, collect_bad_rows
from lakewright.strategies.drift import Alignment, Drift, align
from lakewright.strategies.fold_rows import NUMBER, lookup_sql
from lakewright.strategies.schema_fit import SchemaFit, fit_slice
from lakewright.strategies.slice_load import SliceLoad
from lakewright.strategies.slice_statistics import SliceStatistics, collect_statistics_by
from lakewright.strategies.tuning import Tuning
from lakewright.transform.steps import instant_sql

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from lakewright.lake.lake import Lake
    from lakewright.lake.table_state import TableState
    from lakewright.spec.models.entity import Entity
    from lakewright.strategies.slice_load import LoadRequest

__all__ = ["BadSlice", "Fold", "FoldSource", "prepare_fold", "with_columns_of"]

_Fit = Callable[["FoldSource", int, SchemaFit | None], SchemaFit]
"""Returns the fit of a source's slice after another one's."""


class BadSlice(Exception):
    """A slice of a fold can't be processed; those before it can.

    Args:
        position: Its number in the fold, from 0 on.
        error: Why it can't be.
        is_known: Whether it is this slice that can't be; otherwise the next, smaller fold ends before it.
    """

    def __init__(self, position: int, error: Exception | None = None, *, is_known: bool = True) -> None:
        super().__init__(str(error) if error is not None else f"slice {position} has a fault")
        self.is_known = is_known
        self.position = position
        self.error = error


@dataclass(frozen=True, slots=True)
class FoldSource:
    """Slices with the same columns, which are read together.

    Attributes:
        frame: Their rows, lazily.
        requests: The request of each, in order.
        position: SQL of the position of a row's slice among them; it may use the file's metadata.
    """

    frame: DataFrame
    requests: tuple[LoadRequest, ...]
    position: str = "0"


@dataclass(frozen=True, slots=True)
class Fold:
    """Slices that are prepared for one commit.

    Attributes:
        load: All of them as one load, whose columns are those of the table after the last one.
        rows: Their rows, with these columns and `NUMBER`.
        requests: The request of each, in order.
        statistics: The statistics of each.
        drifts: How the columns of each differ from those of the table before it; None if they do not.
        bad_rows: The rows of each that are put aside.
        lacking: The declared columns that each lacks.
    """

    load: SliceLoad
    rows: DataFrame
    requests: tuple[LoadRequest, ...]
    statistics: tuple[SliceStatistics, ...]
    drifts: tuple[Drift | None, ...]
    bad_rows: tuple[tuple[BadRow, ...], ...]
    lacking: tuple[tuple[str, ...], ...]

    @property
    def columns(self) -> list[str]:
        """Names of the table's columns after the last slice."""
        return [name for name in self.rows.columns if name != NUMBER]


@dataclass(frozen=True, slots=True)
class _Part:
    """Slices of a source that fit the table in the same way.

    Attributes:
        opening: The fit of the first of them.
        fit: The fit of the last of them.
        rows: Their prepared rows with `NUMBER`.
        drifts: The drift of each.
    """

    opening: SchemaFit
    fit: SchemaFit
    rows: DataFrame
    drifts: tuple[Drift | None, ...]


def prepare_fold(
    lake: Lake,
    session: SparkSession,
    entity: Entity,
    sources: Sequence[FoldSource],
    whole: LoadRequest,
) -> Fold:
    """Return slices that are prepared for one commit, after checks of each; nothing is written.

    Args:
        lake: The lake.
        session: A strict session, in which the sources were read.
        entity: The entity.
        sources: The slices, in order.
        whole: The request of all of them.

    Raises:
        BadSlice: A slice can't be processed.
    """

    def fit(source: FoldSource, position: int, after: SchemaFit | None) -> SchemaFit:
        request = source.requests[position]
        return fit_slice(
            lake,
            session,
            entity,
            source.frame,
            slice_name=request.slice_name,
            strategy=request.strategy,
            at=request.at,
            allow_data_loss=request.permissions.allow_data_loss,
            after=after,
            may_lack_columns=request.may_lack_columns,
        )

    parts: list[_Part] = []
    requests = tuple(request for source in sources for request in source.requests)
    for source in sources:
        first = sum(len(part.drifts) for part in parts)
        parts += _parts(fit, source, first, parts[-1].fit if parts else None)
    state, last = parts[0].opening.state, parts[-1].fit
    tuning = Tuning.of(state, size=whole.slice_size, columns=len(last.prepared.frame.columns))
    tuning.apply(session, lake)
    bad_rows = _bad_rows(parts, entity)
    statistics = _statistics(parts, len(requests), are_null_keys_allowed=entity.settings.null_keys == "allow")
    after = last.schema_after
    rows = reduce(lambda one, other: one.unionByName(other), (_aligned(part, after) for part in parts))
    load = SliceLoad(
        lake=lake,
        session=session,
        entity=entity,
        request=whole,
        address=last.address,
        state=state,
        prepared=replace(last.prepared, frame=rows.drop(NUMBER)),
        statistics=_sum(statistics),
        alignment=_alignment(after, state, parts[0].opening),
        is_small=tuning.is_small,
    )
    drifts = tuple(drift for part in parts for drift in part.drifts)
    lacking = tuple(part.fit.prepared.lacking for part in parts for _ in part.drifts)
    return Fold(load, rows, requests, statistics, drifts, bad_rows, lacking)


def _parts(fit: _Fit, source: FoldSource, first: int, before: SchemaFit | None) -> Iterator[_Part]:
    """Yield the parts of a source: one, or its first slice and the others if the first changes the table."""
    opening = _fitting(fit, source, 0, first, before)
    count = len(source.requests)
    if count == 1:
        yield _Part(opening, opening, _numbered(opening, source, first), (_drift(opening),))
        return
    # The second slice finds the table as all after it do.
    usual = _fitting(fit, source, 1, first, opening)
    drifts = (_drift(opening), *((_drift(usual),) * (count - 1)))
    if _are_alike(opening, usual):
        yield _Part(opening, usual, _numbered(usual, source, first), drifts)
        return
    rows = _numbered(opening, source, first).where(f"{NUMBER} = {first}")
    yield _Part(opening, opening, rows, drifts[:1])
    rows = _numbered(usual, source, first).where(f"{NUMBER} > {first}")
    yield _Part(usual, usual, rows, drifts[1:])


def _fitting(fit: _Fit, source: FoldSource, position: int, first: int, after: SchemaFit | None) -> SchemaFit:
    try:
        return fit(source, position, after)
    except Exception as error:
        raise BadSlice(first + position, error) from error


def _drift(fit: SchemaFit) -> Drift | None:
    return fit.alignment.drift if fit.alignment is not None and fit.alignment.drift else None


def _are_alike(one: SchemaFit, other: SchemaFit) -> bool:
    """Return whether two slices of a source give the same rows, and leave the table with the same columns."""
    ours, theirs = one.prepared, other.prepared
    return (
        ours.frame.schema == theirs.frame.schema
        and ours.hashed == theirs.hashed
        and ours.typeless == theirs.typeless
        and one.schema_after.simpleString() == other.schema_after.simpleString()
    )


def _numbered(fit: SchemaFit, source: FoldSource, first: int) -> DataFrame:
    """Return the prepared rows of a source with `NUMBER`, and with each slice's own name and time."""
    from pyspark.sql import functions

    prepared, requests = fit.prepared, source.requests
    frame = prepared.frame.withColumn(NUMBER, functions.expr(f"{first} + {source.position}"))
    if len(requests) == 1:
        return frame
    place = f"({NUMBER} - {first})"
    at = lookup_sql((instant_sql(request.at) for request in requests), place)
    name = lookup_sql((text_sql(request.slice_name) for request in requests), place)
    system = prepared.system
    values = {system.filename: name, system.last_seen: at}
    if prepared.shape is Strategy.HISTORIC:
        values[system.valid_from] = at
    return frame.withColumns({column: functions.expr(sql) for column, sql in values.items()})


def _bad_rows(parts: Sequence[_Part], entity: Entity) -> tuple[tuple[BadRow, ...], ...]:
    """Return the bad rows of each slice; slices that may have some are read one by one."""
    most = entity.settings.max_bad_rows
    found: list[tuple[BadRow, ...]] = []
    for part in parts:
        bad = part.fit.prepared.bad
        found += [()] * (len(part.drifts) - 1)
        found.append(collect_bad_rows(bad, most))
    return tuple(found)


def _statistics(
    parts: Sequence[_Part], count: int, *, are_null_keys_allowed: bool
) -> tuple[SliceStatistics, ...]:
    """Return the statistics of each slice, after checks of its keys and partition values.

    Raises:
        BadSlice: A slice has a fault.
    """
    found: dict[int, SliceStatistics | None] = {}
    alike: dict[tuple[object, ...], list[_Part]] = defaultdict(list)
    for part in parts:
        prepared = part.fit.prepared
        alike[part.rows.schema.simpleString(), prepared.identity, *prepared.watermarks.values()].append(part)
    for group in alike.values():  # slices with the same columns are asked together
        rows = reduce(lambda one, other: one.unionByName(other), (part.rows for part in group))
        prepared = replace(group[0].fit.prepared, frame=rows)
        found |= collect_statistics_by(prepared, NUMBER, are_null_keys_allowed=are_null_keys_allowed)
    statistics: list[SliceStatistics] = []
    for number in range(count):
        own = found.get(number, SliceStatistics(0, 0))
        if own is None:
            raise BadSlice(number)
        statistics.append(own)
    return tuple(statistics)


def _sum(statistics: Sequence[SliceStatistics]) -> SliceStatistics:
    return SliceStatistics(
        records=sum(each.records for each in statistics),
        arrived_deleted=sum(each.arrived_deleted for each in statistics),
    )


def _aligned(part: _Part, after: StructType) -> DataFrame:
    """Return the rows of a part with the columns that the table has after the fold."""
    fit = part.fit
    rows = part.rows
    if fit.alignment is not None:
        columns = fit.alignment.columns.items()
        rows = rows.selectExpr(*(f"{sql} as {name_sql(name)}" for name, sql in columns), NUMBER)
    return with_columns_of(rows, after)


def with_columns_of(rows: DataFrame, wanted: StructType) -> DataFrame:
    """Return rows, with `NUMBER`, with the columns of another schema; columns that they lack are null."""
    present = {field.name.lower(): field for field in rows.schema.fields}
    columns = []
    for own in wanted.fields:
        found, kind = present.get(own.name.lower()), type_of(own.dataType)
        if found is None:
            sql = f"cast(null as {plain_type(kind).ddl})"
        else:
            sql = convert(name_sql(found.name), type_of(found.dataType), kind, column=own.name).strict
        columns.append(f"{sql} as {name_sql(own.name)}")
    return rows.selectExpr(*columns, NUMBER)


def _alignment(after: StructType, state: TableState, first: SchemaFit) -> Alignment | None:
    """Return how the columns after the fold are aligned with those of the present table."""
    if not state.exists or first.table is None:
        return None
    fixed = [*first.prepared.system.all, *state.partition_columns]
    return align(column_types(after), column_types(first.table), policy="evolve", fixed=fixed)
