"""Relations of a workspace, and the rows that are read from them, for tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakewright.relations.relation import Relation, StoredRelation

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakewright.workspace.workspace import Workspace

__all__ = ["rows", "stored"]


def stored(workspace: Workspace, name: str) -> StoredRelation:
    """Return the relation of a name, which holds rows."""
    found = Relation.named(workspace, name)
    assert isinstance(found, StoredRelation)
    return found


def rows(frame: DataFrame, *columns: str) -> list[tuple[object, ...]]:
    """Return the rows in order, of these columns or of all, with each value as a text."""
    texts = frame.select(*(frame[f"`{name}`"].cast("string") for name in columns or frame.columns))
    return sorted(tuple(row) for row in texts.collect())
