"""The warning that CREATE of a view fails, because its query names a column that its table does not have."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from lakewright.errors import Fault, LakewrightError
from lakewright.relations.catalog import ViewRelation
from lakewright.relations.relation import Relation
from lakewright.targets.relation import RelationTarget
from lakewright.workspace.declared_tables import DeclaredTables
from lakewright.workspace.query import table_resource
from lakewright.workspace.sql_check import SqlChecker

if TYPE_CHECKING:
    from lakewright.plan.phase import Phase
    from lakewright.plan.resource import Resource
    from lakewright.targets.target import Target
    from lakewright.workspace.workspace import Workspace

__all__ = ["UNKNOWN_COLUMN", "unknown_column"]

UNKNOWN_COLUMN = "unknown_column"
"""The code of the warning."""


def unknown_column(
    target: Target, workspace: Workspace, phase: Phase, is_created: Callable[[Resource], bool]
) -> Fault | None:
    """Return the warning for a target that creates a view; None if its tables have all columns that it names.

    A table has its columns of today, or those that a step of the plan gives it before.

    Args:
        target: The target.
        workspace: The workspace of its instance.
        phase: CREATE, or BUILD of a view that waited for its tables.
        is_created: Tells whether a step of the plan creates or migrates a table.
    """
    view = target.output(workspace) if isinstance(target, RelationTarget) else None
    if not isinstance(view, ViewRelation):
        return None
    tables = DeclaredTables(workspace)

    def of_table(parts: Sequence[str]) -> Sequence[str] | None:
        found = [each for each in tables.relations(parts) if isinstance(each, Relation)]
        is_made = is_created(table_resource(parts))
        return found[0].names_after(workspace, is_created=is_made) if len(found) == 1 else None

    try:
        analysis = SqlChecker(None).analyse(view.query(workspace), lambda name: of_table((name,)), of_table)
    except LakewrightError:  # observing the view, or its table, tells it
        return None
    if not analysis.unknown:
        return None
    (name, hint), *others = analysis.unknown
    remedy = "Correct the query of the view, or declare the column in the relation of its table"
    return Fault(
        f"{phase} will fail: {view.label}: no table of its query has the column {name!r}"
        + (f", and {len(others)} more" if others else ""),
        remedy=f"{remedy}." if hint is None else f"{remedy}: {hint}",
        code=UNKNOWN_COLUMN,
    )
