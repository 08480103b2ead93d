"""Changes of rows at the places where the comparison has found them: marked, or their files written anew.

Source: Delta's protocol, "Deletion Vectors"; docs/decisions/010-rewriting-tables.md and 032-rows-by-place.md.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakewright.lake.delta_log import DECLARED_LENGTH
from lakewright.schema.sql import name_sql, text_sql
from lakewright.spark.delta_files import PLACE, file_number, file_number_sql
from lakewright.spec.models.entity_settings import DELETION_VECTORS
from lakewright.strategies.changes import ACTION, Changes
from lakewright.strategies.rules import INSERT, PATCH
from lakewright.strategies.table_properties import followed_by

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType

    from lakewright.spark.delta_files import DeltaFiles
    from lakewright.strategies.slice_load import SliceLoad


SMALL_SOURCE = 100_000
"""Number of rows up to which changes are broadcast, so that the table is not sorted; not measured."""


@dataclass(frozen=True, slots=True)
class FoundRows:
    """Changes of which the places of the table's rows are known.

    Attributes:
        changes: The rows to write, with `PLACE`.
        effects: Action to what it assigns: quoted column to SQL over the row to write, `s`, and the table's
            row, `t`.
        files: The table's files.
        types: The types of its columns by their names in lower case.
    """

    load: SliceLoad
    changes: Changes
    effects: Mapping[str, Mapping[str, str]]
    files: DeltaFiles
    types: Mapping[str, DataType]

    @classmethod
    def of(
        cls, load: SliceLoad, changes: Changes, effects: Mapping[str, Mapping[str, str]]
    ) -> FoundRows | None:
        """Return the changes, or None if rows must be merged by their keys, for which Delta looks again.

        That is so where Delta's files are not known, where the commit changes columns, where a
        table's readers follow single rows, and for texts of a declared length, which only statements check.
        """
        files = load.files
        if files is None or not files.has_places or load.fit.evolves or followed_by(load.state.properties):
            return None
        fields = files.frame().schema.fields
        if any(DECLARED_LENGTH in each.metadata for each in fields):
            return None
        return cls(load, changes, effects, files, {each.name.lower(): each.dataType for each in fields})

    @property
    def can_mark(self) -> bool:
        """Whether the table has deletion vectors."""
        return self.load.state.properties.get(DELETION_VECTORS, "").lower() == "true"

    def mark(self) -> None:
        """Mark the former rows of changed records, and append their new ones."""
        rows = self.changes.rows
        places = rows.where(f"{PLACE} is not null").select(PLACE).toArrow().column(0).to_pylist()
        if PATCH not in self.changes.actions:
            self._replace(self._own(rows), marked=places)
            return
        patches = rows.where(f"{ACTION} = {text_sql(PATCH)}")
        written = self._held(patches, {file_number(place) for place in places}, "inner")
        if self.changes.actions.keys() != {PATCH}:
            written = written.unionByName(self._own(rows.where(f"{ACTION} <> {text_sql(PATCH)}")))
        self._replace(written, marked=places)

    def copy(self) -> None:
        """Write the files anew in which a row changes, and append the new rows."""
        rows = self.changes.rows
        held = rows.where(f"{PLACE} is not null")
        found = held.selectExpr(f"{file_number_sql(PLACE)} as number").distinct().collect()
        numbers = [row["number"] for row in found]
        written = self._held(held, numbers, "left")
        if INSERT in self.changes.actions:
            written = written.unionByName(self._own(rows.where(f"{PLACE} is null")))
        self._replace(written, removed=numbers)

    def _replace(
        self, rows: DataFrame, *, marked: Collection[int] = (), removed: Collection[int] = ()
    ) -> None:
        token, inserted = self.load.request.token, self.changes.actions.get(INSERT, 0)
        counts = (inserted, sum(self.changes.actions.values()) - inserted)
        self.files.replace(
            rows, marked=marked, removed=removed, app_id=token.app_id, number=token.number, counts=counts
        )

    def _own(self, rows: DataFrame) -> DataFrame:
        """Return rows of the write as they are, with the table's columns."""
        return rows.select(*self._in_types({name: name_sql(name) for name in self.load.fit.columns}))

    def _held(self, changed: DataFrame, numbers: Collection[int], how: str) -> DataFrame:
        """Return rows of the table's files of these numbers after their changes."""
        from pyspark.sql import functions

        is_small = sum(self.changes.actions.values()) <= SMALL_SOURCE
        source = (functions.broadcast(changed) if is_small else changed).alias("s")
        rows = self.files.rows(numbers).alias("t")
        joined = rows.join(source, functions.expr(f"t.{PLACE} = s.{PLACE}"), how)
        return joined.select(*self._in_types({name: self._changed(name) for name in self.load.fit.columns}))

    def _in_types(self, values: Mapping[str, str]) -> list[Column]:
        """Return columns with these values, in SQL, in the types of the table's columns."""
        from pyspark.sql import functions

        cast = {name: functions.expr(sql).cast(self.types[name.lower()]) for name, sql in values.items()}
        return [value.alias(name) for name, value in cast.items()]

    def _changed(self, name: str) -> str:
        """Return SQL of the value that a column has after the change, if there is one, was applied."""
        column = name_sql(name)
        cases = []
        for action, assignments in self.effects.items():
            given = {own.lower(): sql for own, sql in assignments.items()}
            if column.lower() in given:
                cases.append(f"when {text_sql(action)} then {given[column.lower()]}")
        return f"case s.{ACTION} {' '.join(cases)} else t.{column} end" if cases else f"t.{column}"
