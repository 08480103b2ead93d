"""Schema drift: how a slice's columns differ from its table's, and how they are aligned.

Source: `processing-strategies.md`, "Schema Drift".
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lakewright.errors import SchemaDriftError
from lakewright.schema.conversion import convert
from lakewright.schema.diff import INSIDE, Change, Difference, diff
from lakewright.schema.fault import Owner
from lakewright.schema.rules import ValueRules
from lakewright.schema.shape import plain_type
from lakewright.schema.sql import name_sql
from lakewright.schema.types import VOID, StructField, Type
from lakewright.transform.steps import incompatible_type_error
from lakewright.transform.typed_columns import target_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True)
class Drift:
    """The differences between a slice's columns and its table's.

    Attributes:
        differences: The differences; of types, each field by its path.
        retyped: Column to its types in table and slice, if they differ.
        leaves_out: Whether columns that the table does not have are left out.
    """

    differences: tuple[Difference, ...] = ()
    retyped: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    leaves_out: bool = False

    def __bool__(self) -> bool:
        return bool(self.differences)

    def _named(self, change: Change) -> tuple[str, ...]:
        return tuple(each.path for each in self.differences if each.change is change and "." not in each.path)

    @property
    def added(self) -> tuple[str, ...]:
        """Columns that the table does not have."""
        return self._named(Change.NEW)

    @property
    def removed(self) -> tuple[str, ...]:
        """Columns of the table that the slice does not have."""
        return self._named(Change.MISSING)

    @property
    def messages(self) -> tuple[str, ...]:
        """A text for each difference."""
        return tuple(drift_text(each, leaves_out=self.leaves_out) for each in self.differences)

    def as_json(self) -> dict[str, Any]:
        """Return the drift as records and commits hold it."""
        retyped = {name: list(types) for name, types in self.retyped.items()}
        return {"added": list(self.added), "removed": list(self.removed), "retyped": retyped}


def drift_text(difference: Difference, *, leaves_out: bool) -> str:
    """Return a difference between a slice and its table in words."""
    if difference.change is Change.NEW:
        end = ", and left out (schema_drift: ignore)" if leaves_out else ""
        return f"column {difference.path!r} is new{end}"
    if difference.change is Change.MISSING:
        return f"column {difference.path!r} is missing; it is null in what is written"
    own, known = (None if each is None else each.ddl for each in (difference.actual, difference.expected))
    return f"column {difference.path!r} is {own} in the slice, {known} in the table"


@dataclass(frozen=True, slots=True)
class Alignment:
    """A slice's columns, aligned with its table's.

    Attributes:
        columns: Name in the table to SQL over the slice's columns, for every present and new column of the
            table.
        drift: The differences.
        evolves: Whether the commit changes the table's schema.
        widens: Whether the commit widens the type of a column.
    """

    columns: Mapping[str, str]
    drift: Drift
    evolves: bool
    widens: bool

    def applied(self, frame: DataFrame, *others: str) -> DataFrame:
        """Return the slice's rows with the columns of the table, and others of their own."""
        return frame.selectExpr(
            *(f"{sql} as {name_sql(name)}" for name, sql in self.columns.items()), *others
        )


def align(
    slice_: Mapping[str, Type],
    table: Mapping[str, Type],
    *,
    policy: str,
    fixed: Collection[str],
    delivered: Mapping[str, Type] | None = None,
    zone: str = "UTC",
) -> Alignment:
    """Return how a slice's columns are aligned with its table's.

    Args:
        slice_: The slice's columns, including system columns.
        table: The table's columns.
        policy: `evolve` adds columns and widens types, `ignore` keeps the table's schema, `fail` allows no
            difference.
        fixed: Columns whose types never change: keys, partitions, system columns.
        delivered: The types that columns had before they were converted to those of the table, by the names
            of `slice_`; other columns have the types of `slice_`.
        zone: The time zone of times without an offset.

    Raises:
        SchemaDriftError: The policy does not allow a difference, or no value of a column fits the table's.
    """
    present = {name.lower(): name for name in slice_}
    never = {name.lower() for name in fixed}
    columns: dict[str, str] = {}
    changes: set[Change] = set()
    for name, own in table.items():
        found = present.get(name.lower())
        if found is None:
            columns[name] = value_in(None, VOID, own, column=name, zone=zone)
            continue
        target = target_type(own, slice_[found], policy=policy, is_fixed=name.lower() in never)
        changes |= {each.change for each in _differences({name: target}, {name: own})}
        columns[name] = value_in(found, slice_[found], target, column=name, zone=zone)
    drift = _drift({name: (delivered or {}).get(name, kind) for name, kind in slice_.items()}, table, policy)
    if policy == "fail" and drift:
        raise SchemaDriftError(
            f"the slice's columns differ from the table's: {'; '.join(drift.messages)}",
            remedy="Correct the slice, or set schema_drift: evolve or ignore.",
            details=drift.as_json(),
        )
    if policy == "evolve":
        columns.update({name: name_sql(name) for name in drift.added})
    evolves = policy == "evolve" and bool(drift.added or changes)
    return Alignment(columns, drift, evolves=evolves, widens=Change.RETYPED in changes)


def value_in(
    name: str | None,
    source: Type,
    target: Type,
    *,
    column: str,
    zone: str | None,
    owner: Owner = Owner.TABLE,
    place: str | None = None,
) -> str:
    """Return SQL of a column's value in another type, which fails a query if it does not fit.

    Args:
        name: The column; None for one that is null.
        source: Its type.
        target: The other type.
        column: Its name in messages.
        zone: The time zone of times without an offset.
        owner: What gives the column the other type.
        place: SQL of where a row is from, which the error then names.

    Raises:
        SchemaDriftError: No value of the column fits.
    """
    if name is None:
        return f"cast(null as {plain_type(target).ddl})"
    found = convert(name_sql(name), source, target, column=column, rules=ValueRules(zone, owner))
    if found.is_never:
        raise incompatible_type_error(column, source.ddl, target.ddl)
    return (found if place is None else found.placed(place)).strict


def _differences(actual: Mapping[str, Type], expected: Mapping[str, Type]) -> tuple[Difference, ...]:
    own, known = ([StructField(*each) for each in columns.items()] for columns in (actual, expected))
    return diff(own, known, INSIDE)


def _drift(slice_: Mapping[str, Type], table: Mapping[str, Type], policy: str) -> Drift:
    present = {name.lower(): kind for name, kind in slice_.items()}
    differences = _differences(slice_, table)
    changed = {each.path.partition(".")[0] for each in differences}
    retyped = {
        name: (kind.ddl, present[name.lower()].ddl)
        for name, kind in table.items()
        if name in changed and name.lower() in present
    }
    order = (Change.NEW, Change.MISSING, Change.RETYPED)
    ranked = sorted(differences, key=lambda each: ("." in each.path, order.index(each.change)))
    return Drift(tuple(ranked), retyped, leaves_out=policy == "ignore")
