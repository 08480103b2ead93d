"""The columns of the tables that a query names, as relations of the project declare them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lakewright.errors import LakewrightError
from lakewright.workspace.query import all_rows, table_resource
from lakewright.workspace.readable import ReadableRelation
from lakewright.workspace.sql_tables import table_names

if TYPE_CHECKING:
    from lakewright.plan.resource import Resource
    from lakewright.workspace.workspace import Workspace

__all__ = ["DeclaredTables"]


class DeclaredTables:
    """The relations of a workspace by the table of the catalog, or the path, by which a query names them."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self._relations: dict[Resource, list[ReadableRelation]] | None = None
        self._columns: dict[Resource, tuple[str, ...] | None] = {}

    def relations(self, parts: Sequence[str]) -> Sequence[ReadableRelation]:
        """Return the relations whose table has a name of these parts."""
        if self._relations is None:
            self._relations = {}
            for name in self.workspace.project.relations:
                self._add(name, self._relations)
        return self._relations.get(table_resource(parts), ())

    def columns(self, parts: Sequence[str]) -> Sequence[str] | None:
        """Return the declared columns of the table with a name of these parts; None if they are not known."""
        table = table_resource(parts)
        if table not in self._columns:
            found = [_declared(each, self.workspace) for each in self.relations(parts)]
            known = [names for names in found if names is not None]
            is_known = bool(found) and len(known) == len(found)
            self._columns[table] = tuple(dict.fromkeys(sum(known, ()))) if is_known else None
        return self._columns[table]

    def _add(self, name: str, found: dict[Resource, list[ReadableRelation]]) -> None:
        try:
            relation = self.workspace.relation(name)
            table = relation.table_sql(self.workspace)
        except LakewrightError:  # it has a fault of its own
            return
        if table is not None and not table.startswith("("):  # a query has no name
            for parts in table_names(all_rows(table)):
                found.setdefault(table_resource(parts), []).append(relation)


def _declared(relation: ReadableRelation, workspace: Workspace) -> tuple[str, ...] | None:
    schema = getattr(relation, "declared_schema", None)
    if schema is None or schema.mappings():  # only Spark knows the columns of a mapping
        return None
    try:
        return tuple(field.name for field in relation.fields(workspace))
    except LakewrightError:
        return None
