"""The parts of relations and mappings that the workspace uses, and fields that hold them.

Their methods take the `Workspace`, whose module imports this one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Protocol, TypeAlias

from pydantic import Discriminator, Tag

from lakewright.errors import SpecError
from lakewright.lake.partition import Partition, canonical_partition, expand_selection
from lakewright.plan.resource import Resource
from lakewright.spec.definitions.definition import Definition
from lakewright.spec.models.base import KindOf, RefersTo
from lakewright.spec.models.fields import Field, PartitionField
from lakewright.spec.reading.parsed_file import value_at

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


Workspace: TypeAlias = Any


class ReadableRelation(Protocol):
    """The part of a relation that mappings and schemas use."""

    @property
    def name(self) -> str:
        """Its name; empty if it is written inside another definition."""

    @property
    def kind(self) -> str:
        """Its kind."""

    @property
    def keeps_past(self) -> bool:
        """Whether its rows at an earlier time can be read, or never change."""

    @property
    def partitions(self) -> tuple[PartitionField, ...]:
        """Its partition columns."""

    def check_partition(self, workspace: Workspace, partition: Partition) -> None:
        """Raise a `SpecError` if it can't store one of these values of partition columns."""

    def resources(self, workspace: Workspace, partition: Partition | None = None) -> frozenset[Resource]:
        """Return the resources that reading it requires."""

    def fields(self, workspace: Workspace) -> tuple[Field, ...]:
        """Return its columns: those declared, otherwise those found."""

    def read(self, workspace: Workspace, partitions: Sequence[Partition] = ()) -> DataFrame:
        """Return its rows: those of these partitions, or all if none is given."""

    def table_sql(self, workspace: Workspace) -> str | None:
        """Return the name by which a query refers to it, or None if a query can't."""

    def computed_from(self, workspace: Workspace) -> frozenset[Resource]:
        """Return the resources that its rows are computed from when it is read; empty if it holds them."""


class ReadableMapping(Protocol):
    """The part of a mapping that relations, schemas and the workspace use."""

    def requires(self, workspace: Workspace) -> frozenset[Resource]:
        """Return every resource that its frame depends on."""

    def inputs(self, workspace: Workspace) -> tuple[str, ...]:
        """Return the mappings that it reads."""

    def build(self, workspace: Workspace) -> DataFrame:
        """Return its frame."""

    def output(self, workspace: Workspace, name: str) -> DataFrame:
        """Return the frame of another output than `main`."""

    def check_output(self, name: str) -> None:
        """Raise a `SpecError` unless there is an output of this name."""

    def sql_text(self, workspace: Workspace) -> str:
        """Return a query over tables that gives the same rows."""

    def model_dump_json(self) -> str:
        """Return its declaration as JSON."""


@dataclass(frozen=True, slots=True)
class ImportedRelation:
    """A relation of an imported project, which uses the names and the folder of its own project.

    Attributes:
        relation: The relation.
        home: The workspace of its project.
    """

    relation: ReadableRelation
    home: Workspace

    @property
    def name(self) -> str:
        """Its name, preceded by its project's: `project/name`."""
        return f"{self.home.project.name}/{self.relation.name}"

    @property
    def kind(self) -> str:
        """Its kind."""
        return self.relation.kind

    @property
    def keeps_past(self) -> bool:
        """Whether its rows at an earlier time can be read, or never change."""
        return self.relation.keeps_past

    @property
    def partitions(self) -> tuple[PartitionField, ...]:
        """Its partition columns."""
        return self.relation.partitions

    def check_partition(self, workspace: Workspace, partition: Partition) -> None:
        """Raise a `SpecError` if it can't store one of these values of partition columns."""
        self.relation.check_partition(self.home, partition)

    def resources(self, workspace: Workspace, partition: Partition | None = None) -> frozenset[Resource]:
        """Return the resources that reading it requires."""
        return self.relation.resources(self.home, partition)

    def fields(self, workspace: Workspace) -> tuple[Field, ...]:
        """Return its columns."""
        return self.relation.fields(self.home)

    def read(self, workspace: Workspace, partitions: Sequence[Partition] = ()) -> DataFrame:
        """Return its rows."""
        return self.relation.read(self.home, partitions)

    def table_sql(self, workspace: Workspace) -> str | None:
        """Return the name by which a query refers to it."""
        return self.relation.table_sql(self.home)

    def computed_from(self, workspace: Workspace) -> frozenset[Resource]:
        """Return the resources that its rows are computed from whenever it is read."""
        return self.relation.computed_from(self.home)


def read_relation(
    relation: ReadableRelation, workspace: Workspace, partitions: Sequence[Partition] = ()
) -> DataFrame:
    """Return the rows of a relation; while the lake looks back, note if they are those of today."""
    past = workspace.lake.past
    if past is not None and not relation.keeps_past:
        past.notes.append(f"the relation {relation.name} keeps no past: its rows are those of today")
    return relation.read(workspace, partitions)


RelationReference: TypeAlias = Annotated[
    Annotated[str, Tag("name")] | Annotated[ReadableRelation, KindOf("relation"), Tag("relation")],
    Discriminator(lambda declared: "name" if isinstance(declared, str) else "relation"),
    RefersTo.RELATION,
]
"""A relation's name, or the relation itself."""


def check_partition_values(
    workspace: Workspace,
    definition: Definition | None,
    relation: ReadableRelation,
    values: Mapping[str, Any],
    path: tuple[str, ...],
) -> None:
    """Check that a definition gives each partition column a value that it can have.

    Args:
        workspace: The names of the instance.
        definition: The definition, which shows where a value is written, and with which expression.
        relation: The relation that has the columns.
        values: Texts by column, or values, lists and ranges of them.
        path: The keys of the definition below which they are.

    Raises:
        SpecError: A column isn't one of the relation's, or a value is empty, not of its type, or not one that
            the relation can store. The error names the relation and the expression, and has the place of the
            value.
    """
    for name, value in values.items():
        try:
            for partition in _partitions(relation, name, value):
                relation.check_partition(workspace, partition)
        except SpecError as error:
            raise _located(error, definition, relation, (*path, name)) from error


def _partitions(relation: ReadableRelation, name: str, value: Any) -> Sequence[Partition]:
    if isinstance(value, str):
        return [canonical_partition(relation.partitions, {name: value})]
    return expand_selection(relation.partitions, {name: value})


def _located(
    error: SpecError, definition: Definition | None, relation: ReadableRelation, path: tuple[str, ...]
) -> SpecError:
    label = f"relation {relation.name!r}" if relation.name else f"the {relation.kind} relation"
    if definition is None:
        return SpecError.of(error.message, remedy=error.remedy, subject=label)
    written = value_at(definition.raw, path)
    is_known = path[-1].lower() in {field.name.lower() for field in relation.partitions}
    is_given = is_known and isinstance(written, str) and "$" in written
    given = f" (given as {written})" if is_given else ""
    return SpecError([definition.fault(f"{label}: {error.message}{given}", *path, remedy=error.remedy)])
