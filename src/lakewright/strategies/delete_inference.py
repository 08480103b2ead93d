"""Delete inference: rows of the table that the slice should contain, and does not, are taken as deleted.

A slice should contain the rows in its window: those between the lower bound that follows from the previous
watermark and the slice's own maximum, both included, for every watermark column. Missing rows are
soft-deleted (Merge) or closed (Historic) by the strategy. A brake fails the slice if it would delete too
large a share of its window.

Source: `processing-strategies.md`, "Delete Inference"; the brake, `delete_scope` and the preview are
Lakewright's own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import TYPE_CHECKING

from lakewright.errors import DeleteBrakeError, SpecError
from lakewright.errors.phrase import Command, Phrase
from lakewright.manifest.payload import PERMITTED_BY
from lakewright.schema.sql import name_sql
from lakewright.spec.expressions.functions import EvaluationContext
from lakewright.spec.grants import Grant
from lakewright.spec.models.entity import Strategy
from lakewright.spec.models.watermark import Watermark
from lakewright.spec.words import counted
from lakewright.strategies.slice_statistics import value_sql

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakewright.manifest.watermarks import Value
    from lakewright.manifest.watermarks import Watermark as WatermarkValue
    from lakewright.spec.models.entity import Entity
    from lakewright.spec.models.entity_settings import EntitySettings
    from lakewright.strategies.slice_load import SliceLoad


_SLICE_KEY = "_lakewright_slice_key"


# The window


def lower_bounds(
    entity: Entity, last_values: Mapping[str, WatermarkValue], clock: Callable[[], datetime]
) -> dict[str, object]:
    """Return the lower bound of the window for each watermark column that has a last value.

    Args:
        entity: The entity.
        last_values: Watermark column to the last value in the manifest.
        clock: Gives the current time, for expressions that use it.

    Raises:
        SpecError: An expression cannot be evaluated for its last value.
    """
    evaluation = EvaluationContext(clock=clock)
    return {
        mark.column_name: lower_bound(entity, mark, last_values[mark.column_name].python, evaluation)
        for mark in entity.watermarks
        if mark.column_name in last_values
    }


def lower_bound(entity: Entity, mark: Watermark, last_value: Value, evaluation: EvaluationContext) -> object:
    """Return the lower bound of the window: the watermark's expression over its last value.

    Raises:
        SpecError: The expression cannot be evaluated for that value.
    """
    try:
        return mark.lower_end(last_value, evaluation)
    except SpecError as error:
        raise SpecError.of(
            f"entity {entity.name!r}: the expression {mark.expression} of the watermark {mark.column_name!r} "
            f"cannot be evaluated for the last value {last_value}: {error.message}",
            remedy="Correct the expression so that it suits the column's type, then run again.",
        ) from error


def _window(load: SliceLoad, *alias: str) -> str | None:
    """Return the condition that rows of the table in the slice's window meet; None if nothing is inferred.

    Nothing is inferred without `delete_missing`, without a previous watermark, or for an empty slice. Rows
    with a null watermark are outside every window. With `sequence_by`, a late slice infers nothing: a later
    one has already shown which records are there. A slice of which bad rows were put aside infers nothing
    either: a record may be in one of them.
    """
    entity, statistics = load.entity, load.statistics
    if not entity.settings.delete_missing or statistics.records == 0 or load.bad_rows:
        return None
    if load.sequence is not None and load.request.is_late:
        return None
    if entity.settings.delete_scope == "full":
        return "true"
    columns, bounds = load.prepared.watermarks, load.request.lower_bounds
    if not columns or not all(column in bounds and column in statistics.watermarks for column in columns):
        return None
    types = {column.name.lower(): column.type.ddl for column in load.state.columns}
    above = ">" if entity.settings.delete_scope == "open" else ">="
    conditions: dict[str, str] = {}
    for column, name in columns.items():
        type_sql = types.get(name.lower())
        if type_sql is None:
            return None
        low = value_sql(bounds[column], type_sql)
        high = value_sql(statistics.watermarks[column].python, type_sql)
        value = name_sql(*alias, name)
        conditions[column] = f"{value} {above} {low} and {value} <= {high}"
    return join_conditions([(mark, conditions[mark.column_name]) for mark in entity.watermarks])


def empty_slice_warning(entity: Entity, strategy: Strategy, *, records: int, is_first: bool) -> str | None:
    """Return that a slice without rows deletes nothing, if a slice is to contain all records; else None.

    With watermarks, a slice without rows says only that nothing has changed.

    Args:
        entity: The entity.
        strategy: The strategy that is applied.
        records: Number of the slice's rows, including those put aside.
        is_first: Whether the table had no rows before the slice.
    """
    is_whole = entity.settings.delete_missing and entity.settings.delete_scope == "full"
    if records or is_first or not is_whole or strategy is Strategy.FULL:
        return None
    return (
        "the slice has no rows, so no deletes are inferred and the table keeps its records: "
        "an empty slice is taken for an interrupted delivery"
    )


FULL_REPLACES = "with full, a late slice replaces the rows of later ones, in its partitions if it has any"


def late_slice_warning(entity: Entity, strategy: Strategy) -> str | None:
    """Return what a late slice does to rows of later ones, if no other slice does so; else None.

    Example:
        >>> from types import SimpleNamespace
        >>> settings = SimpleNamespace(delete_missing=True, delete_scope="full", sequence_by=None)
        >>> late_slice_warning(SimpleNamespace(settings=settings), Strategy.MERGE)
        'with delete_scope: full, a late slice also deletes records that only later slices have'
    """
    settings = entity.settings
    if strategy is Strategy.FULL:
        return None if settings.sequence_by is not None else FULL_REPLACES
    if not settings.delete_missing:
        return None
    if settings.sequence_by is not None:
        return "with sequence_by, no deletes are inferred from a late slice"
    if settings.delete_scope == "full":
        return "with delete_scope: full, a late slice also deletes records that only later slices have"
    return None


def join_conditions(conditions: Sequence[tuple[Watermark, str]]) -> str:
    """Return the conditions of several watermarks as one.

    Each is joined to all before it by its `operation`. Neighbours with the same `operation_group` stand in
    brackets, which are joined by the operation of their first.

    Example:
        >>> from lakewright.spec.models.watermark import Operation
        >>> mark = Watermark(column_name="a", expression="${last_value}")
        >>> join_conditions([(mark, "a > 1"), (mark.model_copy(update={"operation": Operation.OR}), "b > 1")])
        '((a > 1) or (b > 1))'
    """
    text = ""
    for _, neighbours in groupby(conditions, lambda each: each[0].operation_group):
        inner = ""
        group = list(neighbours)
        for mark, condition in group:
            inner = f"({inner} {mark.operation.value} ({condition}))" if inner else f"({condition})"
        text = f"({text} {group[0][0].operation.value} {inner})" if text else inner
    return text


# Rows that are missing


def rows_expected(load: SliceLoad) -> DataFrame | None:
    """Return the rows of the table that the slice should contain; None if nothing is inferred.

    These are the rows in its window that are not deleted (Merge) or are current (Historic). Rows without a
    primary key, which another program has written, are left out: no write would find them again.
    """
    window = _window(load)
    if window is None:
        return None
    system = load.system
    is_live = (
        f"{name_sql(system.valid_to)} is null"
        if load.request.strategy is Strategy.HISTORIC
        else f"not coalesce({name_sql(system.deleted)}, false)"
    )
    return load.target().where(f"{window} and {is_live} and {name_sql(system.key)} is not null")


def written_condition(load: SliceLoad, inferred: int) -> str:
    """Return the condition, over the table as `t`, that every row meets which the slice may change.

    Args:
        load: The slice and its table.
        inferred: Number of inferred deletes; if there are any, the window is included.
    """
    matched = load.match_condition("t")
    return f"(({matched}) or ({_window(load, 't')}))" if inferred else matched


def beside_slice(load: SliceLoad, expected: DataFrame, how: str) -> DataFrame:
    """Return the expected rows joined with the primary keys of the slice; `left_anti` gives missing ones."""
    from pyspark.sql import functions

    key = name_sql(load.system.key)
    keys = load.prepared.frame.selectExpr(f"{key} as {_SLICE_KEY}")
    return expected.join(keys, functions.expr(f"{key} = {_SLICE_KEY}"), how)


# The brake


def check_delete_brake(load: SliceLoad, inferred: int, expected: int) -> None:
    """Raise `DeleteBrakeError` if the slice would delete too large a share of its window.

    Args:
        load: The slice and its table.
        inferred: Rows that would be deleted.
        expected: Rows in the window that are not deleted yet.

    Raises:
        DeleteBrakeError: There are more inferred deletes than the entity's `delete_floor`, and more than its
            `max_delete_ratio` of the expected rows.
    """
    settings = load.entity.settings
    if not is_braked(load, inferred, expected):
        return
    verb = "soft-deleted" if load.request.strategy is Strategy.MERGE else "closed"
    raise DeleteBrakeError(
        f"{inferred} of the {expected} rows in the slice's window are missing from it and would be {verb}; "
        f"{brake_text(settings)}",
        remedy=Phrase(
            "Check that the slice is complete. If it is, ",
            Command("apply", load.entity.called, "--allow", Grant.DELETES),
            " applies it. To allow such deletes for good, raise max_delete_ratio or delete_floor.",
        ),
        details={
            PERMITTED_BY: Grant.DELETES,
            "inferred": inferred,
            "rows": expected,
            "max_delete_ratio": settings.max_delete_ratio,
            "delete_floor": settings.delete_floor,
        },
    )


def is_braked(load: SliceLoad, inferred: int, expected: int) -> bool:
    """Return whether so many inferred deletes among the expected rows fail a slice, unless permitted."""
    return not load.request.permissions.allow_deletes and trips_brake(
        load.entity.settings, inferred, expected
    )


def trips_brake(settings: EntitySettings, inferred: int, expected: int) -> bool:
    """Return whether so many inferred deletes among the expected rows fail the slice.

    Example:
        >>> from lakewright.spec.models.entity_settings import EntitySettings
        >>> [trips_brake(EntitySettings(), inferred, 30) for inferred in (15, 20, 21)]
        [False, False, True]
        >>> trips_brake(EntitySettings(max_delete_ratio=0.1), 899, 900)
        True
    """
    return inferred > settings.delete_floor and inferred > settings.max_delete_ratio * expected


def brake_text(settings: EntitySettings) -> str:
    """Return what the brake allows, in words.

    Example:
        >>> from lakewright.spec.models.entity_settings import EntitySettings
        >>> brake_text(EntitySettings(max_delete_ratio=0.125))
        'max_delete_ratio allows 12.5%, and delete_floor 20 rows whatever their share'
    """
    share, floor = f"{settings.max_delete_ratio * 100:.6g}%", counted(settings.delete_floor, "row")
    return f"max_delete_ratio allows {share}, and delete_floor {floor} whatever their share"


# The preview


@dataclass(frozen=True, slots=True)
class DeletePreview:
    """The deletes that processing a slice would infer.

    Attributes:
        inferred: Expected rows that the slice does not contain.
        expected: Rows of the table that the slice should contain.
        brake: What the brake allows, in words.
        is_refused: Whether the brake would fail the slice.
    """

    inferred: int
    expected: int
    brake: str
    is_refused: bool

    def text(self, slice_name: str, strategy: Strategy) -> str:
        """Return the preview as a sentence."""
        if not self.inferred:
            return f"{slice_name} lacks none of the {self.expected} rows in its window"
        verb = "close" if strategy is Strategy.HISTORIC else "soft-delete"
        end = f", but the slice would fail: {self.brake}" if self.is_refused else f" ({self.brake})"
        return (
            f"{slice_name} lacks {self.inferred} of {self.expected} rows in its window, "
            f"and would {verb} them{end}"
        )


def preview_deletes(load: SliceLoad) -> DeletePreview | None:
    """Count by one query the deletes that a slice would infer; return None if nothing can be inferred."""
    if load.request.strategy is Strategy.FULL or load.is_first:
        return None
    expected = rows_expected(load)
    if expected is None:
        return None
    beside = beside_slice(load, expected.select(name_sql(load.system.key)), "left")
    row = beside.selectExpr("count(1) as expected", f"count_if({_SLICE_KEY} is null) as inferred").first()
    inferred, count = (0, 0) if row is None else (int(row["inferred"]), int(row["expected"]))
    settings = load.entity.settings
    return DeletePreview(inferred, count, brake_text(settings), trips_brake(settings, inferred, count))
