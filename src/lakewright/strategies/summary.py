"""Metrics of a processed slice, checked to add up.

Source: `processing-strategies.md`, "Metrics" of Merge and of Historic.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Self

from lakewright.errors import MetricError
from lakewright.spec.models.entity import Strategy


@dataclass(frozen=True, slots=True)
class Summary:
    """Counts of one slice, taken from this run's own work.

    Attributes:
        strategy: The strategy that was applied.
        records_in_slice: Rows of the slice.
        inserted: Rows whose key was not in the table.
        updated: Merge: matched rows that did not arrive deleted, changed or not. Historic: new versions of
            keys that had a current one.
        deleted: Merge, and Full if it reloads a table of Merge or Historic: rows that arrived deleted.
            Historic: current rows that delete inference closed.
        unchanged: Historic: matched rows with the same hash.
        touched: Always 0, as in Datalake Foundation.
        changed: Merge: matched rows with another hash, or back after a soft delete. Historic: as `updated`.
        closed: Historic: rows that arrived deleted, matched or not.
        without_row: Of the rows that arrived deleted, those of whose key the table has no row, or no current
            version: they delete nothing.
        inferred_deletes: Rows of the table that delete inference flagged.
        superseded: Rows that were not used, because the slice has a later one of the same key.
        outdated: Rows that changed nothing, because the table has a later one of the same key.
        quarantined: Bad rows that were put aside.
        delta_version: Version of the commit; None if nothing was written.
        seconds: Duration in seconds.
        is_first: Whether the slice created the table, or wrote the first rows to it.
    """

    strategy: Strategy
    records_in_slice: int = 0
    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    unchanged: int = 0
    touched: int = 0
    changed: int = 0
    closed: int = 0
    without_row: int = 0
    inferred_deletes: int = 0
    superseded: int = 0
    outdated: int = 0
    quarantined: int = 0
    delta_version: int | None = None
    seconds: float = 0.0
    is_first: bool = False

    def checked(self) -> Self:
        """Return the summary itself if its counts add up to the records of the slice.

        Raises:
            MetricError: They do not.
        """
        parts = {
            Strategy.FULL: self.inserted + self.deleted,
            Strategy.MERGE: self.inserted + self.updated + self.deleted,
            Strategy.HISTORIC: self.inserted + self.updated + self.unchanged + self.closed,
        }
        counted = parts[self.strategy] + self.superseded + self.outdated + self.quarantined
        if counted != self.records_in_slice:
            raise MetricError(
                f"the slice has {self.records_in_slice} records, but {counted} were counted",
                details=self.as_json(),
            )
        return self

    def as_json(self) -> dict[str, Any]:
        """Return the metrics under the names of Datalake Foundation."""
        return {_NAMES.get(name, name): value for name, value in asdict(self).items()}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        """Return the summary that `as_json` wrote."""
        known = {field.name: _NAMES.get(field.name, field.name) for field in fields(cls)}
        values = {name: document[key] for name, key in known.items() if key in document}
        return cls(**{**values, "strategy": Strategy(values["strategy"])})


_NAMES = {
    "records_in_slice": "recordsInSlice",
    "without_row": "withoutRow",
    "inferred_deletes": "inferredDeletes",
    "delta_version": "deltaVersion",
    "is_first": "isFirst",
}


def plain_names(metrics: Mapping[str, Any]) -> dict[str, Any]:
    """Return recorded metrics under the names of this module, whichever names they were recorded under.

    Example:
        >>> plain_names({"recordsInSlice": 3, "inserted": 3})
        {'records_in_slice': 3, 'inserted': 3}
    """
    names = {recorded: name for name, recorded in _NAMES.items()}
    return {names.get(name, name): value for name, value in metrics.items()}


def changed_rows(metrics: Mapping[str, Any]) -> int:
    """Return how many records of the table a slice inserted, changed or deleted.

    A matched row with the same values is none of them, although Merge counts it as updated.

    Args:
        metrics: What was recorded of the slice, under the names of this module.

    Example:
        >>> changed_rows({"strategy": "merge", "inserted": 2, "updated": 9, "changed": 1, "deleted": 3})
        6
    """
    return int(metrics.get("inserted") or 0) + int(metrics.get("changed") or 0) + deleted_rows(metrics)


def deleted_rows(metrics: Mapping[str, Any]) -> int:
    """Return how many rows of the table a slice deleted, by records that arrived deleted or by inference.

    Strategies count these under different names: see `Summary`.

    Args:
        metrics: What was recorded of the slice, under the names of this module.

    Example:
        >>> deleted_rows({"strategy": "merge", "deleted": 3, "without_row": 1, "inferred_deletes": 4})
        6
        >>> deleted_rows({"strategy": "historic", "deleted": 4, "inferred_deletes": 4, "closed": 3})
        7
    """
    arrived = "closed" if metrics.get("strategy") == Strategy.HISTORIC else "deleted"
    count = {name: metrics.get(name) or 0 for name in (arrived, "without_row", "inferred_deletes")}
    return max(0, count[arrived] - count["without_row"]) + int(count["inferred_deletes"])
