"""What one slice changed in its entity's table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lakewright.app import App
from lakewright.errors import UsageError
from lakewright.errors.phrase import Command, Phrase
from lakewright.lake.commit import readable
from lakewright.notebook import html_table, json_value, values_text
from lakewright.schema.sql import name_sql
from lakewright.slices.chain import slices_in
from lakewright.transform.row_values import object_sql, parse_values
from lakewright.usecases.past_table import PastTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row
    from pyspark.sql.types import StructType

__all__ = ["CHANGE_COLUMNS", "RowChange", "SliceChanges", "changes_of", "slice_changes"]


CHANGE_COLUMNS = ("change", "key", "before", "after")
"""What a table of `RowChange.shown` has in its columns."""


@dataclass(frozen=True, slots=True)
class RowChange:
    """What a slice did to one record.

    Attributes:
        key: The values of the business key.
        change: `inserted`, `updated` or `deleted`.
        before: The values before; of an update only those that changed. None for an insert.
        after: The values after; None for a delete.
    """

    key: Mapping[str, Any]
    change: str
    before: Mapping[str, Any] | None
    after: Mapping[str, Any] | None

    @property
    def shown(self) -> tuple[str, ...]:
        """The change as a row of a table: what, the key, the values before and after."""
        return self.change, *map(values_text, (self.key, self.before, self.after))

    def as_json(self) -> dict[str, Any]:
        """Return the change as commands print it."""
        return {
            "key": json_value(self.key),
            "change": self.change,
            "before": json_value(self.before),
            "after": json_value(self.after),
        }


@dataclass(frozen=True, slots=True, repr=False)
class SliceChanges:
    """What one slice changed in its entity's table.

    Attributes:
        version: The version of the table that its commit made.
        run_id: The run that processed it; None if the commit doesn't say.
        together: Other slices in the same commit: what they changed is among the changes.
        rewound: The version of an undo or a rebuild that has replaced rows since; None if there is
            none.
        counts: Number of records by change.
        rows: Some of the records, by key.
    """

    entity: str
    slice: str
    item_id: str
    version: int
    run_id: str | None
    together: tuple[str, ...]
    rewound: int | None
    counts: Mapping[str, int]
    rows: tuple[RowChange, ...]

    def __repr__(self) -> str:
        counts = " ".join(f"{name}={count}" for name, count in self.counts.items() if count)
        return f"<SliceChanges {self.entity}/{self.slice} {counts or 'none'}>"

    def _repr_html_(self) -> str:
        return html_table(repr(self)[1:-1], CHANGE_COLUMNS, (row.shown for row in self.rows), self.notes)

    @property
    def notes(self) -> list[str]:
        """What a reader must know of the changes."""
        notes = []
        if self.together:
            notes.append(f"in one commit with {', '.join(self.together)}: all changes are shown")
        if self.rewound is not None:
            notes.append(
                f"the undo or rebuild of version {self.rewound} has replaced rows of the table since"
            )
        return notes

    def as_json(self) -> dict[str, Any]:
        """Return the document that `history diff` prints."""
        return {
            "entity": self.entity,
            "slice": self.slice,
            "item_id": self.item_id,
            "version": self.version,
            "run_id": self.run_id,
            "together": list(self.together),
            "rewound": self.rewound,
            "counts": dict(self.counts),
            "rows": [row.as_json() for row in self.rows],
        }


def slice_changes(app: App, entity_name: str, slice_name: str, *, limit: int) -> SliceChanges:
    """Return what a slice changed: the records of the table before and after its commit, compared.

    With history, the open versions are compared.

    Raises:
        SpecError: There is no such entity.
        UsageError: The table's log has no commit of such a slice, or the entity has no business key.
        TargetError: The files of these versions are gone.
    """
    table = PastTable.of(app, entity_name)
    if not table.entity.business_keys:
        raise UsageError(
            f"{table.entity.called} has no business key, so its records can't be followed",
            remedy=Phrase("Compare two versions of the table with ", Command("sql", "--as-of"), "."),
        )
    commit, applied = table.commit_of(slice_name)
    others = tuple(each.name for each in slices_in(commit, table.app_id) if each != applied)
    counts, rows = changes_of(table, commit.version, limit=limit)
    return SliceChanges(
        entity=table.entity.called,
        slice=slice_name,
        item_id=applied.item_id,
        version=commit.version,
        run_id=commit.content.get("run"),
        together=others,
        rewound=table.rewound_since(commit.version),
        counts=counts,
        rows=rows,
    )


def changes_of(
    table: PastTable, version: int, *, limit: int
) -> tuple[Mapping[str, int], tuple[RowChange, ...]]:
    """Return the number of records that a version of a table changed, by change, and some of them by key.

    Raises:
        TargetError: The files of the version, or of that before it, are gone.
    """
    before, after = table.read(max(version - 1, 0)), table.read(version)
    changed = _changed(table, before if version else before.where("false"), after)
    with readable(table.entity.name, version - 1):
        counts = {
            str(row["change"]): int(row["n"])
            for row in changed.groupBy("change").count().toDF("change", "n").collect()
        }
        rows = changed.orderBy("key").limit(limit).collect()
    return counts, tuple(_change(row, before.schema, after.schema) for row in rows)


def _changed(table: PastTable, old: DataFrame, new: DataFrame) -> DataFrame:
    """Return `change`, `key`, `before` and `after` of the records that differ; all but `change` are JSON."""
    key, digest = name_sql(table.system.key), name_sql(table.system.hash)

    def side(frame: DataFrame, name: str) -> DataFrame:
        # The declared strategy need not be the one by which this version was made.
        has_history = table.system.valid_to.lower() in {column.lower() for column in frame.columns}
        live = table.system.current_sql(has_history=has_history)
        frame = frame.where(live)
        keys = ((name, name_sql(name), frame.schema[name].dataType) for name in table.keys)
        return frame.selectExpr(
            f"{key} AS {name}_pk",
            f"{digest} AS {name}_hash",
            f"{table.values(frame)} AS {name}",
            f"{object_sql(keys, has_nulls=False)} AS {name}_key",
        )

    before, after = side(old, "before"), side(new, "after")
    joined = before.join(after, before["before_pk"] == after["after_pk"], "full_outer")
    return joined.where("not (before_pk <=> after_pk and before_hash <=> after_hash)").selectExpr(
        "CASE WHEN before_pk IS NULL THEN 'inserted' WHEN after_pk IS NULL THEN 'deleted' "
        "ELSE 'updated' END AS change",
        "coalesce(after_key, before_key) AS key",
        "before",
        "after",
    )


def _change(row: Row, old: StructType, new: StructType) -> RowChange:
    types = (("key", old if row["after"] is None else new), ("before", old), ("after", new))
    key, before, after = (None if row[n] is None else parse_values(row[n], kind) for n, kind in types)
    if before is not None and after is not None:
        names = [name for name in {**before, **after} if before.get(name) != after.get(name)]
        before, after = ({name: side.get(name) for name in names} for side in (before, after))
    return RowChange(key or {}, row["change"], before, after)
