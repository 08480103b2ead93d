"""The names by which a query refers to the project's entities, relations and mappings.

A name with a layer says which definition is meant: `silver.customers` is the entity's table, `gold.customers`
the relation, `mapping.customers` the mapping. A plain name is the entity or the relation of that name, or
else the mapping; it is an error if both an entity and a relation have it. The plain name of an entity means
its current rows; all versions are `customers.history`, as in the queries of mappings.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from lakewright.errors import UsageError
from lakewright.spec.loading.short_form import HISTORY
from lakewright.spec.project import Project
from lakewright.workspace.sql_tables import WholeName, table_references, with_whole_names


class Layer(StrEnum):
    """The first part of a name with two parts."""

    SILVER = "silver"
    GOLD = "gold"
    MAPPING = "mapping"

    @property
    def category(self) -> str:
        """The category of the definitions in it."""
        return _CATEGORIES[self]


_CATEGORIES = {Layer.SILVER: "entity", Layer.GOLD: "relation", Layer.MAPPING: "mapping"}


@dataclass(frozen=True, slots=True)
class TableName:
    """A definition of the project as a query refers to it.

    Attributes:
        name: The name of the definition.
        view: The name of its temporary view.
        is_current: Whether only the current rows of an entity are meant.
    """

    layer: Layer
    name: str
    view: str
    is_current: bool = False

    def __str__(self) -> str:
        """Return the name with its layer."""
        return f"{self.layer}.{self.name}"


def tables_of(project: Project, layers: Iterable[Layer] = tuple(Layer)) -> Iterator[TableName]:
    """Yield every definition of these layers, by name."""
    for layer in layers:
        for name in sorted(project.definitions(layer.category)):
            yield TableName(layer, name, f"{layer}.{name}")


def find_tables(project: Project, query: str) -> tuple[TableName, ...]:
    """Return the project's definitions that a query reads; names of the catalog are not among them.

    Raises:
        UsageError: A plain name is that of an entity and of a relation.
    """
    found = (_find(project, reference.parts) for reference in table_references(query))
    return tuple(dict.fromkeys(table for table in found if table is not None))


def rewritten(query: str, tables: Iterable[TableName]) -> str:
    """Return the query with the temporary view of a definition in place of each name with a layer.

    The plain name remains valid for columns (`customers.id`), as for a table of the catalog.
    """
    views = {
        tuple(table.view.lower().split(".", 1)): WholeName(table.view, table.name)
        for table in tables
        if "." in table.view
    }
    return with_whole_names(query, views)


def shadowed_mappings(project: Project, query: str) -> Iterator[str]:
    """Yield a sentence for each plain name that is also that of a mapping, which the query does not read."""
    for table in find_tables(project, query):
        mapping = _name_in(project, Layer.MAPPING, table.name)
        if table.view == mapping and table.layer is not Layer.MAPPING and not _reads(project, table):
            yield f"{table.view} is the {table.layer.category} {table}; the mapping is mapping.{mapping}"


def _reads(project: Project, table: TableName) -> bool:
    """Return whether the mapping of a table's name reads just this table."""
    read = project.mappings[table.name].raw.get("relation")
    return read == table.name or (table.is_current and isinstance(read, Mapping))


def _find(project: Project, parts: tuple[str, ...]) -> TableName | None:
    if len(parts) == 2 and parts[0].lower() in set(Layer):
        layer = Layer(parts[0].lower())
        name = _name_in(project, layer, parts[1])
        return None if name is None else TableName(layer, name, f"{layer}.{name}")
    if len(parts) == 2 and parts[1].lower() == HISTORY:
        entity = _name_in(project, Layer.SILVER, parts[0])
        return None if entity is None else TableName(Layer.SILVER, entity, f"{entity}.{HISTORY}")
    return _find_plain(project, parts[0]) if len(parts) == 1 else None


def _find_plain(project: Project, plain: str) -> TableName | None:
    found = [(layer, name) for layer in Layer if (name := _name_in(project, layer, plain)) is not None]
    # Projects name the mapping that reads or fills a relation like the relation: the stored rows are meant.
    stored = [each for each in found if each[0] is not Layer.MAPPING]
    if len(stored) > 1:
        listed = " and ".join(f"the {layer.category} {layer}.{name}" for layer, name in stored)
        forms = " or ".join(f"{layer}.{name}" for layer, name in stored)
        raise UsageError(f"{plain!r} is ambiguous: it names {listed}", remedy=f"Write {forms}.")
    if not found:
        return None
    layer, name = (stored or found)[0]
    return TableName(layer, name, plain, is_current=layer is Layer.SILVER)


def _name_in(project: Project, layer: Layer, name: str) -> str | None:
    section = project.definitions(layer.category)
    if name in section:
        return name
    return next((other for other in section if other.lower() == name.lower()), None)
