"""Slices as they were read, prepared for their table: one, or several that one commit applies.

Of several slices, each fits the table that those before it leave.

Source: `processing-strategies.md`, "Common Processing Pipeline" and "Schema Drift"; that several slices are
prepared together is Lakewright's own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING

from lakewright.schema.spark import column_types
from lakewright.schema.sql import name_sql, text_sql
from lakewright.schema.types import VOID
from lakewright.spark.delta_files import delta_files
from lakewright.spec.models.entity import Strategy
from lakewright.strategies.bad_rows import collect_bad_rows
from lakewright.strategies.drift import Alignment, align, value_in
from lakewright.strategies.schema_fit import SchemaFit, fit_slice
from lakewright.strategies.slice_load import SliceLoad
from lakewright.strategies.slice_statistics import SliceStatistics, collect_statistics, prunable_columns
from lakewright.strategies.tuning import SMALL_SLICE, Tuning
from lakewright.transform.steps import find_name, instant_sql, with_columns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from lakewright.errors import TargetError
    from lakewright.lake.commit import Token
    from lakewright.lake.lake import Lake
    from lakewright.spark.delta_files import DeltaFiles
    from lakewright.spec.models.entity import Entity
    from lakewright.strategies.slice_load import LoadRequest


NUMBER = "_lakewright_slice"
"""Column with the number of a row's slice, from 0 on."""


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
        slices: Each of them, with the table before it, and the statistics that need no window.
    """

    load: SliceLoad
    rows: DataFrame
    slices: tuple[SliceLoad, ...]

    @property
    def columns(self) -> list[str]:
        """Names of the table's columns after the last slice."""
        return [name for name in self.rows.columns if name != NUMBER]


@dataclass(frozen=True, slots=True)
class _Part:
    """Slices of a source that have the same columns and fit the table in the same way.

    Attributes:
        opening: The fit of the first of them.
        fit: The fit of the last of them.
        requests: The request of each.
        rows: Their prepared rows; if there are several slices, with `NUMBER`.
    """

    opening: SchemaFit
    fit: SchemaFit
    requests: tuple[LoadRequest, ...]
    rows: DataFrame


def prepare_load(
    lake: Lake, session: SparkSession, entity: Entity, frame: DataFrame, request: LoadRequest
) -> SliceLoad:
    """Return a slice with its table, and with statistics that one query collects; nothing is written.

    Args:
        lake: The lake.
        session: A strict session, in which `frame` was read; its settings are tuned to the slice's size.
        entity: The entity.
        frame: The slice's rows, lazily.
        request: The request to process the slice.

    Raises:
        TargetError: The slice cannot be processed.
    """
    fit = fit_slice(lake, session, entity, frame, request)
    part = _Part(fit, fit, (request,), fit.prepared.frame)
    (load,) = _loads(lake, session, entity, [part], size=request.slice_size)
    return load


def prepare_fold(
    lake: Lake,
    session: SparkSession,
    entity: Entity,
    sources: Sequence[FoldSource],
    *,
    token: Token,
    check_lock: Callable[[], None],
) -> Fold:
    """Return several slices that are prepared for one commit, after checks of each; nothing is written.

    Args:
        lake: The lake.
        session: A strict session, in which the sources were read.
        entity: The entity.
        sources: The slices, in order.
        token: Numbers the commit of all of them.
        check_lock: Raises an error if one of them may not be written any more.

    Raises:
        BadSlice: A slice can't be processed.
    """

    def fit(frame: DataFrame, request: LoadRequest, after: SchemaFit | None) -> SchemaFit:
        return fit_slice(lake, session, entity, frame, request, after=after)

    parts: list[_Part] = []
    for source in sources:
        first = sum(len(part.requests) for part in parts)
        parts += _parts(fit, source, first, parts[-1].fit if parts else None)
    requests = [request for part in parts for request in part.requests]
    size = sum(request.slice_size for request in requests)
    slices = _loads(lake, session, entity, parts, size=size)
    after = parts[-1].fit.schema_after
    rows = _union([_aligned(part, after) for part in parts])
    load = replace(
        slices[-1],
        request=replace(requests[-1], slice_size=size, token=token, check_lock=check_lock),
        prepared=replace(parts[-1].fit.prepared, frame=rows.drop(NUMBER)),
        statistics=SliceStatistics(
            records=sum(each.statistics.records for each in slices),
            arrived_deleted=sum(each.statistics.arrived_deleted for each in slices),
        ),
        alignment=_alignment(after, parts[0].opening),
        table=None,
        bad_rows=(),
    )
    return Fold(load, rows, tuple(slices))


def _loads(
    lake: Lake, session: SparkSession, entity: Entity, parts: Sequence[_Part], *, size: int
) -> list[SliceLoad]:
    """Return each slice with its statistics, after checks of its keys and partition values.

    Raises:
        TargetError: The one slice has a fault.
        BadSlice: One of several has.
    """
    state, last = parts[0].opening.state, parts[-1].fit
    tuning = Tuning.of(state, size=size, columns=len(last.prepared.frame.columns))
    # Statistics ask for the slice alone, and those of a small one are one job without adaptive execution.
    of_slice = replace(tuning, is_small=size <= SMALL_SLICE)
    of_slice.apply(session, lake)
    files = _files(lake, session, entity, parts[0].opening)
    fitting = [
        (request, part.fit if place else part.opening, place == len(part.requests) - 1)
        for part in parts
        for place, request in enumerate(part.requests)
    ]
    most = entity.settings.max_bad_rows
    # Slices that may have bad rows are read one by one.
    bad_rows = [
        collect_bad_rows(fit.prepared.bad, most, request.slice_name) if is_last else ()
        for request, fit, is_last in fitting
    ]
    statistics = _statistics(entity, parts, len(fitting))
    if tuning != of_slice:
        tuning.apply(session, lake)
    return [
        SliceLoad(
            lake=lake,
            session=session,
            entity=entity,
            request=request,
            state=state,
            prepared=fit.prepared,
            statistics=own,
            alignment=fit.alignment,
            files=files,
            table=fit.table,
            bad_rows=bad,
        )
        for (request, fit, _), own, bad in zip(fitting, statistics, bad_rows, strict=True)
    ]


def _files(lake: Lake, session: SparkSession, entity: Entity, fit: SchemaFit) -> DeltaFiles | None:
    """Return the files of a table in which rows are looked for, if they are known."""
    address, state = entity.places(lake.settings).silver, fit.state
    if fit.prepared.shape is Strategy.FULL or address.location is None or not state.exists or state.is_empty:
        return None
    files = delta_files(session, address.location)
    is_of_state = files is not None and files.version == state.version
    return files if files is not None and is_of_state and files.has_rows_placed else None


def _statistics(entity: Entity, parts: Sequence[_Part], count: int) -> list[SliceStatistics]:
    """Return the statistics of each slice; of one alone with ranges."""
    found: dict[int, SliceStatistics | TargetError] = {}
    alike: dict[tuple[object, ...], list[_Part]] = defaultdict(list)
    for part in parts:
        prepared = part.fit.prepared
        alike[part.rows.schema.simpleString(), prepared.identity, *prepared.watermarks.values()].append(part)
    for group in alike.values():  # slices with the same columns are asked together
        prepared = replace(group[0].fit.prepared, frame=_union([part.rows for part in group]))
        found |= collect_statistics(
            prepared,
            are_null_keys_allowed=entity.settings.null_keys == "allow",
            ranged=prunable_columns(entity, prepared) if count == 1 else (),
            number=None if count == 1 else NUMBER,
        )
    statistics = []
    for number in range(count):
        own = found.get(number, SliceStatistics())
        if not isinstance(own, SliceStatistics):
            raise own if count == 1 else BadSlice(number, own)
        statistics.append(own)
    return statistics


def _union(frames: Sequence[DataFrame]) -> DataFrame:
    return reduce(lambda one, other: one.unionByName(other), frames)


def _parts(
    fit: Callable[[DataFrame, LoadRequest, SchemaFit | None], SchemaFit],
    source: FoldSource,
    first: int,
    before: SchemaFit | None,
) -> Iterator[_Part]:
    """Yield the parts of a source: one, or its first slice and the others if the first changes the table."""

    def fitting(position: int, after: SchemaFit | None) -> SchemaFit:
        try:
            return fit(source.frame, source.requests[position], after)
        except Exception as error:
            raise BadSlice(first + position, error) from error

    requests = source.requests
    opening = fitting(0, before)
    # The second slice finds the table as all after it do.
    usual = opening if len(requests) == 1 else fitting(1, opening)
    rows = _numbered(usual, source, first)
    if _are_alike(opening, usual):
        yield _Part(opening, usual, requests, rows)
        return
    alone = _numbered(opening, source, first).where(f"{NUMBER} = {first}")
    yield _Part(opening, opening, requests[:1], alone)
    yield _Part(usual, usual, requests[1:], rows.where(f"{NUMBER} > {first}"))


def _are_alike(one: SchemaFit, other: SchemaFit) -> bool:
    """Return whether two slices of a source give the same rows, and leave the table with the same columns."""
    ours, theirs = one.prepared, other.prepared
    return (
        ours.frame.schema == theirs.frame.schema
        and ours.hashed == theirs.hashed
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
    return with_columns(frame, values)


def lookup_sql(values: Iterable[str], number: str) -> str:
    """Return SQL of the value with a number, counted from 0; null for null.

    Example:
        >>> lookup_sql(["'a'", "'b'"], "n")
        "if(n is null, null, element_at(array('a', 'b'), n + 1))"
    """
    # In ANSI mode Spark takes an element with a null position for a value that is never null.
    return f"if({number} is null, null, element_at(array({', '.join(values)}), {number} + 1))"


def _aligned(part: _Part, after: StructType) -> DataFrame:
    """Return the rows of a part with the columns that the table has after the fold."""
    fit, rows = part.fit, part.rows
    rows = rows if fit.alignment is None else fit.alignment.applied(rows, NUMBER)
    return with_columns_of(rows, after, fit.prepared.form.zone)


def with_columns_of(rows: DataFrame, wanted: StructType, zone: str, *, kept: Sequence[str] = ()) -> DataFrame:
    """Return rows, with `NUMBER`, with the columns of another schema; columns that they lack are null.

    Times without an offset are in the zone. The columns in `kept` stay as they are.
    """
    present = column_types(rows.schema)
    columns = []
    for own, kind in column_types(wanted).items():
        found = find_name(present, own)
        sql = value_in(found, present.get(found or "", VOID), kind, column=own, zone=zone)
        columns.append(f"{sql} as {name_sql(own)}")
    return rows.selectExpr(*columns, NUMBER, *kept)


def _alignment(after: StructType, first: SchemaFit) -> Alignment | None:
    """Return how the columns after the fold are aligned with those of the present table."""
    if first.table is None:
        return None
    fixed = [*first.prepared.system.all, *first.state.partition_columns]
    zone = first.prepared.form.zone
    return align(column_types(after), column_types(first.table), policy="evolve", fixed=fixed, zone=zone)
