"""A few rows of an entity's table, read without Spark."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lakewright.app import App
from lakewright.errors.phrase import Command, Phrase
from lakewright.lake.observation import local_table_path
from lakewright.spec.models.entity import Entity

__all__ = ["RowSample", "read_sample"]

LONGEST = 200


@dataclass(frozen=True, slots=True)
class RowSample:
    """Rows as text; None is null. `note` says why there are none."""

    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str | None, ...], ...] = ()
    note: str | None = None


def read_sample(app: App, entity: Entity, limit: int) -> RowSample:
    """Return some rows of an entity's table, in no particular order."""
    path = local_table_path(app.lake, entity.places(app.lake.settings).silver)
    if path is None:
        return RowSample(note=Phrase("only Spark can read this table; ", Command("sql"), " shows its rows"))
    try:
        return _rows(str(path), limit)
    except Exception as error:  # a table that this reader does not know, or none
        first = next(iter(str(error).splitlines()), type(error).__name__)
        return RowSample(note=f"the table can't be read here: {first}")


def _rows(path: str, limit: int) -> RowSample:
    from deltalake import DeltaTable, QueryBuilder

    reader = QueryBuilder().register("sample", DeltaTable(path))
    batches = reader.execute(f"SELECT * FROM sample LIMIT {limit:d}")  # noqa: S608 - a number of ours
    columns: tuple[str, ...] = ()
    rows: list[tuple[str | None, ...]] = []
    for batch in batches:
        columns = tuple(batch.schema.names)
        values = [batch.column(at).to_pylist() for at in range(len(columns))]
        rows += [tuple(map(_text, row)) for row in zip(*values, strict=True)]
    return RowSample(columns, tuple(rows), None if rows else "the table is empty")


def _text(value: Any) -> str | None:
    return None if value is None else str(value)[:LONGEST]
