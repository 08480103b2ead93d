"""The datasets of a target: what it reads and writes, with columns and their lineage.

Nothing here starts Spark, and no Spark job runs. Columns of Delta tables are read from their logs. The
lineage of a mapping's columns is read from its plan, if a session runs already.

Source: OpenLineage's specification, "Naming" and "Facets".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from collections.abc import Mapping as MapOf
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lakewright.documentation.lineage.spark_plan import column_sources
from lakewright.errors import LakewrightError
from lakewright.lake.delta_log import state_of
from lakewright.lake.observation import open_log
from lakewright.mappings.mapping import Mapping
from lakewright.plan.resource import Resource
from lakewright.spec.models.places import Address
from lakewright.targets.lease import table_resource

if TYPE_CHECKING:
    from lakewright.lake.lake import Lake
    from lakewright.plan.phase import Phase
    from lakewright.spec.models.column import Column
    from lakewright.spec.models.entity import Entity
    from lakewright.spec.models.fields import Field
    from lakewright.targets.target import Target
    from lakewright.workspace.workspace import Workspace

__all__ = ["Dataset", "DatasetName", "dataset_name", "entity_datasets", "inputs_of", "outputs_of"]

SPARK_CATALOG = "spark_catalog"
"""The namespace of tables that only have a name in Spark's catalog."""

Sources = tuple[tuple["DatasetName", str], ...]
"""Columns of other datasets."""


@dataclass(frozen=True, slots=True, order=True)
class DatasetName:
    """The name of a dataset, as other tools name it too."""

    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class Dataset:
    """A dataset that a target reads or writes.

    Attributes:
        columns: Names and types of its columns; none if they are not known.
        lineage: For columns that are written, the columns that they are computed from.
    """

    name: DatasetName
    columns: tuple[tuple[str, str], ...] = ()
    lineage: MapOf[str, Sources] = field(default_factory=dict)


def dataset_name(resource: Resource) -> DatasetName:
    """Return the name of a resource.

    Example:
        >>> dataset_name(Resource.file("s3a://lake/silver/orders"))
        DatasetName(namespace='s3://lake', name='silver/orders')
        >>> dataset_name(Resource.file("/lake/bronze/orders/*")).name
        '/lake/bronze/orders'
    """
    name = resource.name.removesuffix("/*")
    if resource.category == "table":
        return DatasetName(SPARK_CATALOG, name)
    if resource.category == "jdbc":
        place, _, table = name.removeprefix("jdbc:").rpartition("/")
        return DatasetName(place, table)
    scheme, separator, rest = name.partition("://")
    if not separator:
        return DatasetName("file", name)
    host, _, path = rest.partition("/")
    return DatasetName(f"{scheme}://{host}", path or "/")


def inputs_of(target: Target, workspace: Workspace, phase: Phase) -> tuple[Dataset, ...]:
    """Return what a target reads in a phase."""
    declared = _bronze_columns(target, workspace)
    found = {dataset_name(each): each for each in sorted(target.requires(workspace, phase), key=str)}
    return tuple(
        Dataset(name, _columns(workspace.lake, resource) or declared) for name, resource in found.items()
    )


def outputs_of(target: Target, workspace: Workspace, phase: Phase) -> tuple[Dataset, ...]:
    """Return what a target writes in a phase."""
    found = {dataset_name(each): each for each in sorted(target.provides(workspace, phase), key=str)}
    lineage = _lineage(target, workspace, phase) if found else {}
    return tuple(
        Dataset(name, _columns(workspace.lake, resource), lineage) for name, resource in found.items()
    )


def entity_datasets(entity: Entity, workspace: Workspace) -> dict[str, tuple[Dataset, ...]]:
    """Return the slices of an entity as input, and its silver table as output."""
    places = entity.places(workspace.lake.settings)
    slices = dataset_name(Resource.file(f"{places.bronze}/*"))
    silver = table_resource(places.silver)
    columns = tuple((each.source, each.type.ddl if each.type else "") for each in _declared(entity))
    table = Dataset(dataset_name(silver), _columns(workspace.lake, silver), _entity_lineage(entity, slices))
    return {"inputs": (Dataset(slices, columns),), "outputs": (table,)}


def _declared(entity: Entity) -> Iterator[Column]:
    """Yield the columns that an entity takes from its slices."""
    return (each for each in entity.columns if not each.is_calculated)


def _entity_lineage(entity: Entity, slices: DatasetName) -> dict[str, Sources]:
    return {each.silver: ((slices, each.source),) for each in _declared(entity)}


def _columns(lake: Lake, resource: Resource) -> tuple[tuple[str, str], ...]:
    """Return the columns of a Delta table whose log can be read without Spark."""
    if resource.category != "file" or resource.name.endswith("*"):
        return ()
    try:
        table = open_log(lake, Address(location=resource.name)).table
    except LakewrightError:
        return ()
    return () if table is None else _named(state_of(table).columns)


def _named(fields: Iterable[Field]) -> tuple[tuple[str, str], ...]:
    return tuple((each.name, each.type.ddl) for each in fields)


def _bronze_columns(target: Target, workspace: Workspace) -> tuple[tuple[str, str], ...]:
    """Return the declared columns of an entity's slices."""
    if target.kind != "entity":
        return ()
    entity = workspace.entity(str(getattr(target, "entity", "")))
    return tuple((each.source, each.type.ddl if each.type else "") for each in _declared(entity))


def _lineage(target: Target, workspace: Workspace, phase: Phase) -> MapOf[str, Sources]:
    if target.kind == "entity":
        inputs = [dataset_name(each) for each in target.requires(workspace, phase)]
        entity = workspace.entity(str(getattr(target, "entity", "")))
        return _entity_lineage(entity, inputs[0]) if inputs else {}
    mapping = getattr(target, "mapping", None)
    if not isinstance(mapping, str) or not workspace.lake.is_started:
        return {}
    try:
        return dict(_Traced(workspace).columns(mapping))
    except Exception:  # a plan that cannot be read must not cost the rest of the event
        return {}


class _Traced:
    """Traces the columns of mappings back to those of relations."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._outline = workspace.outline()
        self._known: dict[str, dict[str, Sources]] = {}

    def columns(self, mapping: str) -> Iterator[tuple[str, Sources]]:
        """Yield the columns of a mapping with those of relations that they are computed from."""
        name = mapping.partition(":")[0]
        if name not in self._known:
            self._known[name] = dict(self._traced(name))
        yield from self._known[name].items()

    def _traced(self, name: str) -> Iterator[tuple[str, Sources]]:
        mapping = self._workspace.mapping(name)
        assert isinstance(mapping, Mapping)  # noqa: S101 - as is every registered kind
        relations = [each.name for each in mapping.references() if each.category == "relation"]
        if mapping.kind == "relation" and relations:
            place = self._place(relations[0])
            for each in self._outline.fields(name) if place else ():
                yield each.name, ((place, each.name),) if place else ()
            return
        for column, sources in column_sources(self._outline, name).items():
            found: dict[tuple[DatasetName, str], None] = {}
            for source in sources:
                found |= dict.fromkeys(dict(self.columns(source.item.name)).get(source.column, ()))
            if found:
                yield column, tuple(found)

    def _place(self, relation: str) -> DatasetName | None:
        found = sorted(self._workspace.relation(relation).resources(self._workspace), key=str)
        return dataset_name(found[0]) if found else None
