"""Rows of an adopted table: their keys, hashes, flags and intervals, checked before anything is written.

Source: `processing-strategies.md`, "Historic Strategy (SCD Type 2)"; the checks are Lakewright's own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from lakewright.errors import MigrationError
from lakewright.schema.canonical import CanonicalForm
from lakewright.schema.spark import columns_of
from lakewright.schema.sql import name_sql
from lakewright.schema.types import Scalar, StructField, Type
from lakewright.spec.models.entity import Strategy
from lakewright.strategies.adoption.row_checks import (
    CURRENT,
    DELETED,
    END,
    FLAG,
    FORMER,
    FROM,
    KEY,
    NEXT,
    NEXT_FLAG,
    OPEN,
    SAME,
    SEEN,
    UNREAD,
    check_adopted,
    row_checks,
)
from lakewright.transform.version_times import instant_of_sql, sentinel_sql

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakewright.spec.models.adoption import Adoption
    from lakewright.spec.models.entity import Entity
    from lakewright.strategies.adoption.columns import AdoptedColumns
    from lakewright.transform.pipeline import PreparedSlice

__all__ = ["Adopted", "adopt_rows"]

_SLICE_KEY, _SLICE_ROW, _OWN_KEY, _OWN_ROW, _SLICE_PK, _SLICE_HASH = (
    f"_lakewright_{name}"
    for name in ("slice_key", "slice_row", "own_key", "own_row", "slice_pk", "slice_hash")
)
"""Columns of the rows while they are compared with the slice."""

_TRUE, _FALSE = "('true', 't', 'yes', 'y', '1')", "('false', 'f', 'no', 'n', '0')"


@dataclass(frozen=True, slots=True)
class Adopted:
    """The rows of the table after its adoption.

    Attributes:
        rows: The rows with the table's columns by their silver names, and the system columns.
        counts: Numbers of `rows`, `current` and `deleted` ones, for the record.
    """

    rows: DataFrame
    counts: Mapping[str, int]


def adopt_rows(
    table: DataFrame,
    prepared: PreparedSlice,
    entity: Entity,
    columns: AdoptedColumns,
    *,
    zone: str,
    at: datetime,
) -> Adopted:
    """Return the rows of a table after its adoption, after checking them.

    The next slice determines how rows are hashed: which columns of the source, with which types. A row with
    the values of a record of the slice gets that record's hash, so that it counts as unchanged.

    Args:
        table: The table's present rows.
        prepared: The next slice.
        entity: The entity.
        columns: The effect of the adoption on the table's columns.
        zone: Time zone of times without an offset.
        at: The latest instant at which versions may begin or end.

    Raises:
        MigrationError: The meaning of rows is not clear: keys that occur more than once, intervals that
            overlap or go backwards, times or flags that cannot be read.
    """
    rows = _Rows(prepared, entity, columns, zone)
    found = rows.keyed(table)
    is_historic = entity.strategy is Strategy.HISTORIC
    found = rows.timed(found) if is_historic else rows.flagged(found)
    counts = check_adopted(found, row_checks(at, entity, is_historic=is_historic), prepared)
    if is_historic and rows.adoption.are_deletes_rows:
        found = found.where(f"not coalesce({FLAG}, false)")
    return Adopted(rows.finished(found, is_historic=is_historic), counts)


class _Rows:
    """The steps from the present rows of a table to its adopted rows; each is lazy."""

    def __init__(self, prepared: PreparedSlice, entity: Entity, columns: AdoptedColumns, zone: str) -> None:
        self.prepared = prepared
        self.system = prepared.system
        self.columns = columns
        self.zone = zone
        self._kinds: dict[str, str] = {}
        adoption = entity.settings.adopt
        if adoption is None:
            raise RuntimeError("the entity declares no adoption")
        self.adoption: Adoption = adoption

    def keyed(self, table: DataFrame) -> DataFrame:
        """Return the rows with primary key and hash, under silver names; columns with roles are unchanged."""
        self._kinds = {
            role: table.schema[name].dataType.typeName() for role, name in self.columns.roles.items()
        }
        renamed = table.toDF(*(self.columns.kept.get(name, name) for name in table.columns))
        types = {field.name.lower(): field for field in columns_of(renamed.schema)}
        self._require_keys(types)
        renamed = renamed.drop(*self.columns.replaced)
        if self._has_slices_types(types):
            made = {KEY: self._hash(self.prepared.key_fields, types)}
            return _with(renamed, {**made, self.system.hash: self._hash(self.prepared.hashed, types)})
        return self._beside_slice(renamed, types)

    def _require_keys(self, types: Mapping[str, StructField]) -> None:
        if not self.prepared.key_columns:
            raise MigrationError(
                f"the slice contains the primary key {self.system.key}; no table can be adopted for it",
                remedy="Declare the business key's columns instead.",
            )
        missing = [name for name in self.prepared.key_columns if name.lower() not in types]
        if missing:
            raise MigrationError(
                f"the table to adopt lacks the business key's columns {', '.join(missing)}",
                remedy="Map them to the table's columns in `adopt: columns`.",
                details={"missing": missing},
            )

    def _has_slices_types(self, types: Mapping[str, StructField]) -> bool:
        """Return whether values of the table have the same hashes as values of the source."""
        fields = [*self.prepared.hashed, *self.prepared.key_fields]
        found = [(field, types.get(self._silver(field.name).lower())) for field in fields]
        return all(own is None or _is_same(field.type, own.type) for field, own in found)

    def _silver(self, source: str) -> str:
        return self.prepared.names.get(source, source)

    def _hash(self, fields: tuple[StructField, ...], types: Mapping[str, StructField]) -> str:
        """Return SQL of the hash of a table's row, with its values cast to the source's types."""
        form = self.prepared.form
        return form.hash_of(_hashables(form, types, fields, self._silver))

    def _beside_slice(self, table: DataFrame, types: Mapping[str, StructField]) -> DataFrame:
        """Return the rows with key and hash of the slice's record if the silver values are equal."""
        from pyspark.sql import functions

        form = self.prepared.form
        silver = {field.name: field for field in columns_of(self.prepared.frame.schema)}
        counted = [silver[self._silver(field.name)] for field in self.prepared.hashed]
        keys = [silver[name] for name in self.prepared.key_columns]
        own_key, own_row, theirs_key, theirs_row = (
            form.hash_of(_hashables(form, types, keys)),
            form.hash_of(_hashables(form, types, counted)),
            form.hash_sql(keys),
            form.hash_sql(counted),
        )
        theirs = self.prepared.frame.selectExpr(
            f"{theirs_key} as {_SLICE_KEY}",
            f"{theirs_row} as {_SLICE_ROW}",
            f"{name_sql(self.system.key)} as {_SLICE_PK}",
            f"{name_sql(self.system.hash)} as {_SLICE_HASH}",
        ).dropDuplicates([_SLICE_KEY])
        joined = _with(table, {_OWN_KEY: own_key, _OWN_ROW: own_row}).join(
            theirs, functions.expr(f"{_OWN_KEY} = {_SLICE_KEY}"), "left"
        )
        key = self._hash(self.prepared.key_fields, types)
        row = self._hash(self.prepared.hashed, types)
        found = {
            KEY: f"coalesce({_SLICE_PK}, {key})",
            self.system.hash: f"if({_OWN_ROW} = {_SLICE_ROW}, {_SLICE_HASH}, {row})",
        }
        return _with(joined, found)

    def flagged(self, rows: DataFrame) -> DataFrame:
        """Return rows of Merge with the deleted flag and the time when they were last seen."""
        made = {DELETED: self._flag("deleted", "false"), SEEN: self._instant("last_seen")}
        made[SAME] = f"count(1) over (partition by {KEY})"
        return _with(rows, {**made, UNREAD: self._unread()})

    def timed(self, rows: DataFrame) -> DataFrame:
        """Return versions of Historic with their intervals, and those of the neighbours of each record."""
        over = f"over (partition by {KEY} order by {FROM}, {END} nulls last)"
        found = _with(
            rows,
            {
                FROM: self._instant("valid_from"),
                SEEN: self._instant("last_seen"),
                CURRENT: self._flag("is_current", "null"),
                FLAG: self._flag("deleted", "null"),
                UNREAD: self._unread(),
                END: self._end(),
            },
        )
        is_told = {"valid_to", "is_current"} <= self.columns.roles.keys()
        is_open = f"{END} is null" if is_told else CURRENT
        found = _with(found, {NEXT: f"lead({FROM}) {over}", OPEN: is_open})
        found = _with(found, {END: self._closed()})
        found = _with(
            found,
            {
                NEXT: f"lead({FROM}) {over}",
                FORMER: f"lag({END}) {over}",
                NEXT_FLAG: f"lead({FLAG}) {over}",
            },
        )
        return _with(found, {DELETED: self._deleted()})

    def _closed(self) -> str:
        """Return SQL of a version's end, derived from the next version or the delete if necessary."""
        end = END
        if "valid_to" not in self.columns.roles and "is_current" in self.columns.roles:
            end = f"if(not {CURRENT}, {NEXT}, null)"
        elif self.adoption.ends == "inclusive":
            next_ = f"{NEXT} > {END} and {NEXT} <= {END} + interval 1 day"
            step = "1 day" if self._kind("valid_to") == "date" else "1 microsecond"
            end = f"if({next_}, {NEXT}, {END} + interval {step})"
        if self.adoption.are_deletes_rows or "last_seen" not in self.columns.roles:
            return end
        return f"if({end} is null and {FLAG}, greatest({SEEN}, {FROM}), {end})"

    def _deleted(self) -> str:
        """Return SQL of the deleted flag: set in flagged versions, and in those that a delete closed."""
        closed = f"{END} is not null and not {NEXT} <=> {END}"
        if self.adoption.are_deletes_rows:
            closed = f"({closed}) or (coalesce({NEXT_FLAG}, false) and {NEXT} <=> {END})"
        return f"coalesce({FLAG}, false) or {closed}"

    def finished(self, rows: DataFrame, *, is_historic: bool) -> DataFrame:
        """Return the rows with only the columns of the silver table."""
        system = self.system
        made: dict[str, str] = {}
        if is_historic:
            made = {system.valid_from: FROM, system.valid_to: END, system.is_current: f"{END} is null"}
        if self.columns.kept and system.filename not in self.columns.kept.values():
            made[system.filename] = "cast(null as string)"
        made |= {system.key: KEY, system.deleted: f"coalesce({DELETED}, false)", system.last_seen: SEEN}
        kept = [name_sql(name) for name in self.columns.kept.values()]
        return rows.selectExpr(
            *kept, name_sql(system.hash), *(f"{sql} as {name_sql(name)}" for name, sql in made.items())
        )

    def _kind(self, role: str) -> str:
        return self._kinds.get(role, "")

    def _instant(self, role: str) -> str:
        """Return SQL of the instant in a column; null if there is none or it cannot be read."""
        name = self.columns.roles.get(role)
        if name is None:
            return "cast(null as timestamp)"
        return instant_of_sql(name_sql(name), self._kind(role), self.zone)

    def _end(self) -> str:
        name = self.columns.roles.get("valid_to")
        if name is None:
            return "cast(null as timestamp)"
        value = name_sql(name)
        return f"if({self._is_sentinel(value)}, null, {self._instant('valid_to')})"

    def _is_sentinel(self, value: str) -> str:
        """Return SQL of whether an end stands for no end."""
        return sentinel_sql(value, self.adoption.sentinels)

    def _flag(self, role: str, missing: str) -> str:
        name = self.columns.roles.get(role)
        if name is None:
            return f"cast({missing} as boolean)"
        text = f"lower(trim(cast({name_sql(name)} as string)))"
        return f"case when {text} in {_TRUE} then true when {text} in {_FALSE} then false end"

    def _unread(self) -> str:
        """Return SQL of whether a column with a role holds a value that cannot be read."""
        tests = []
        for role, name in self.columns.roles.items():
            value = name_sql(name)
            if role in ("is_current", "deleted"):
                tests.append(f"({value} is not null and ({self._flag(role, 'null')}) is null)")
            elif role == "valid_to":
                is_read = f"{self._is_sentinel(value)} or {self._instant(role)} is not null"
                tests.append(f"not ({is_read})")
            else:
                tests.append(f"({value} is not null and {self._instant(role)} is null)")
        return " or ".join(tests) or "false"


_WHOLE = frozenset(("tinyint", "smallint", "int", "bigint"))


def _is_same(source: Type, own: Type) -> bool:
    """Return whether every value has the same hash in both types."""
    return source == own or {source.ddl, own.ddl} <= _WHOLE


def _hashable(
    form: CanonicalForm, own: StructField, wanted: StructField
) -> Iterator[tuple[StructField, str]]:
    """Yield a table's value under another name: in its own type if equal values have equal hashes in both.

    Otherwise in the wanted type; a value that cannot be cast is added as text, so that it differs from null.
    """
    value = name_sql(own.name)
    if wanted.type == Scalar("void") or form.class_of(own.type) == form.class_of(wanted.type):
        yield StructField(wanted.name, own.type), value
        return
    cast = f"try_cast({value} as {wanted.type.ddl})"
    yield wanted, cast
    yield StructField(wanted.name, Scalar("string")), f"if({cast} is null, cast({value} as string), null)"


def _hashables(
    form: CanonicalForm,
    types: Mapping[str, StructField],
    wanted: Iterable[StructField],
    silver: Callable[[str], str] = str,
) -> Iterator[tuple[StructField, str]]:
    """Yield the table's values to hash; `silver` maps a wanted column to its name in the table."""
    for field in wanted:
        own = types.get(silver(field.name).lower())
        if own is not None:
            yield from _hashable(form, own, field)


def _with(frame: DataFrame, columns: Mapping[str, str]) -> DataFrame:
    from pyspark.sql import functions

    return frame.withColumns({name: functions.expr(sql) for name, sql in columns.items()})
