"""The base of all relations: data that can be read, and often created, written, emptied and removed."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self

from pydantic import Field as Declared

from lakewright.errors import Fault, SpecError, TargetError
from lakewright.lake.partition import Partition, canonical_partition, partition_condition
from lakewright.plan.observation import Answer, Observation
from lakewright.plan.reason import Code
from lakewright.plan.resource import Resource
from lakewright.schema.shape import lost_fields
from lakewright.schema.sql import name_sql
from lakewright.schemas.schema import Schema
from lakewright.spec.models.base import KindOf, Listed, Named, RefersTo
from lakewright.spec.models.documentation import Documentation
from lakewright.spec.models.fields import Field, PartitionField
from lakewright.spec.reason import Reason
from lakewright.spec.suggestions import one_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakewright.lake.commit import LandedCommit
    from lakewright.workspace.readable_parts import ReadableRelation
    from lakewright.workspace.workspace import Workspace


class OutputMode(StrEnum):
    """How a write treats existing rows."""

    OVERWRITE = "OVERWRITE"
    OVERWRITE_DYNAMIC = "OVERWRITE_DYNAMIC"
    APPEND = "APPEND"
    UPDATE = "UPDATE"
    IGNORE_IF_EXISTS = "IGNORE_IF_EXISTS"
    ERROR_IF_EXISTS = "ERROR_IF_EXISTS"

    @property
    def each_build(self) -> Reason | None:
        """What each build does to rows that are there, so that a filled target is built again; or None."""
        code = {"APPEND": Code.ADDS_ROWS, "UPDATE": Code.UPDATES_ROWS}.get(self.value)
        return None if code is None else Reason(code, {"mode": self.value})


read_mode = one_of(
    OutputMode,
    "output mode",
    {
        "dynamicoverwrite": "OVERWRITE_DYNAMIC",
        "upsert": "UPDATE",
        "ignore": "IGNORE_IF_EXISTS",
        "error": "ERROR_IF_EXISTS",
    },
)


@dataclass(frozen=True, slots=True)
class WriteSummary:
    """The result of a write.

    Attributes:
        rows: Number of rows written.
        version: Version of the Delta table after the write; None for other relations.
        left_out: Columns of the rows that the relation lacks.
        undeclared: Columns of the rows that the relation's table has, although the relation declares others.
    """

    rows: int
    version: int | None = None
    left_out: tuple[str, ...] = ()
    undeclared: tuple[str, ...] = ()


def undeclared_columns(
    declared: Iterable[Field], present: Iterable[Field], brought: DataFrame
) -> tuple[Field, ...]:
    """Return the columns that a table has and rows bring in its type, although its relation declares others.

    They are written: the rows would have nulls in them instead. Case does not count.
    """
    from lakewright.lake.columns import fields_of

    own = {field.name.lower() for field in declared}
    types = {field.name.lower(): field.type for field in fields_of(brought.schema)}
    return tuple(
        field
        for field in present
        if field.name.lower() not in own and types.get(field.name.lower()) == field.type
    )


def left_out(brought: DataFrame, kept: Iterable[Field], others: Iterable[str] = ()) -> tuple[str, ...]:
    """Return the columns that rows bring and that are not kept, with fields of structs as paths.

    Args:
        brought: The rows as a mapping gives them.
        kept: The columns that are written.
        others: Further columns that are kept; case does not count.
    """
    from lakewright.lake.columns import fields_of

    types = {field.name.lower(): field.type for field in kept}
    present = types.keys() | {name.lower() for name in others}
    found: list[str] = []
    for field in fields_of(brought.schema):
        if field.name.lower() not in present:
            found.append(field.name)
        elif field.name.lower() in types:
            found += lost_fields(field.type, types[field.name.lower()], field.name)
    return tuple(found)


class Relation(Named):
    """A relation as declared; without a further base class it can only be read."""

    keeps_past: ClassVar[bool] = False
    """Whether its rows at an earlier time can be read, or never change."""

    description: str | None = Declared(default=None, description="Description for readers.")
    declared_schema: Annotated[
        Annotated[Schema, KindOf("schema", default="inline")] | None, RefersTo.INSIDE
    ] = Declared(default=None, alias="schema", description="Columns; default: inferred from existing data.")
    partitions: Listed[PartitionField] = Declared(default=(), description="Partition columns.")
    documentation: Documentation | None = Declared(
        default=None, exclude=True, description="What the documentation shows, including checks."
    )
    metadata: Any = Declared(default=None, description="User-defined labels.")

    @classmethod
    def named(cls, workspace: Workspace, reference: str | ReadableRelation) -> Relation:
        """Return the relation that a definition names or contains.

        Raises:
            SpecError: There is no relation of this name.
        """
        found = workspace.relation(reference) if isinstance(reference, str) else reference
        if not isinstance(found, Relation):
            label = f"relation {found.name!r}"
            remedy = "Read it with a mapping; only its own project can write it."
            raise SpecError([Fault(f"{label} belongs to another project", remedy=remedy, subject=label)])
        return found

    @property
    def label(self) -> str:
        """The name of the relation in messages."""
        return f"relation {self.name!r}" if self.name else f"the {self.kind} relation"

    def check_partition(self, workspace: Workspace, partition: Partition) -> None:
        """Check that each value, which is one of its column's type, is one that the relation can store.

        Raises:
            SpecError: It is not.
        """

    def declared(self, workspace: Workspace) -> tuple[Field, ...] | None:
        """Return the declared columns, with partition columns at the end unless they are among them."""
        if self.declared_schema is None:
            return None
        return self._divided(self.declared_schema.fields(workspace))

    def _divided(self, fields: Sequence[Field]) -> tuple[Field, ...]:
        names = {field.name.lower() for field in fields}
        return (*fields, *(each.as_field() for each in self.partitions if each.name.lower() not in names))

    def without_undeclared(self, workspace: Workspace, frame: DataFrame) -> DataFrame:
        """Return the rows of a stored table without the columns that the schema does not declare.

        The others keep their order and their types. A schema that follows from mappings leaves out none: they
        may read the table.
        """
        if self.declared_schema is None or self.declared_schema.mappings():
            return frame
        names = {field.name.lower() for field in self.declared(workspace) or ()}
        kept = [name for name in frame.columns if name.lower() in names]
        return frame if len(kept) == len(frame.columns) else frame.select(*map(name_sql, kept))

    def within(self, frame: DataFrame, partitions: Sequence[Partition]) -> DataFrame:
        """Return the rows of partitions; all rows if none is given."""
        wanted = [canonical_partition(self.partitions, each) for each in partitions]
        return frame.where(partition_condition(self.partitions, wanted)) if wanted else frame

    def selected(
        self, workspace: Workspace, frame: DataFrame, partitions: Sequence[Partition] = ()
    ) -> DataFrame:
        """Return the rows of some partitions, with the declared columns if there are any."""
        from lakewright.lake.columns import conform

        fields = self.declared(workspace)
        return self.within(frame if fields is None else conform(frame, fields), partitions)

    def brought(self, frame: DataFrame) -> tuple[Field, ...]:
        """Return the columns of rows, with partition columns at the end unless they are among them.

        All may be null: that these rows have no nulls says nothing of the next ones.
        """
        from lakewright.lake.columns import fields_of

        return self._divided([each.model_copy(update={"nullable": True}) for each in fields_of(frame.schema)])

    def fields(self, workspace: Workspace) -> tuple[Field, ...]:
        """Return the declared columns, or those found by reading."""
        from lakewright.lake.columns import fields_of

        declared = self.declared(workspace)
        return fields_of(self.read(workspace).schema) if declared is None else declared

    def names_after(self, workspace: Workspace, *, is_created: bool) -> tuple[str, ...] | None:
        """Return the names of its columns after CREATE; None if they are not known.

        Args:
            workspace: The names of the instance.
            is_created: Whether this run creates or migrates it.
        """
        return None

    def requires(self, workspace: Workspace) -> frozenset[Resource]:
        """Return the resources that must exist before it can be created."""
        mappings = self.declared_schema.mappings() if self.declared_schema else ()
        return frozenset().union(*(workspace.required(name) for name in mappings))

    def table_sql(self, workspace: Workspace) -> str | None:
        """Return its name in a catalog query, or None if queries cannot name it."""
        return None

    def computed_from(self, workspace: Workspace) -> frozenset[Resource]:
        """Return the resources that its rows are computed from when it is read; empty if it holds them."""
        return frozenset()

    def resources(self, workspace: Workspace, partition: Partition | None = None) -> frozenset[Resource]:
        """Return the resources that writing it, or a partition, provides and reading it requires.

        By default there are none: its rows are part of the project.
        """
        return frozenset()

    def observe(self, workspace: Workspace, partition: Partition | None = None) -> Observation:
        """Return whether it exists, has rows and matches its declaration; failures are in `error`.

        By default it exists: its rows are declared, or computed when it is read.
        """
        return Observation(f"{self.kind}:{self.name}", exists=Answer.YES, filled=self.filled)

    @property
    def filled(self) -> Answer:
        """Whether it has rows, as far as its declaration says so."""
        return Answer.UNKNOWN

    @abstractmethod
    def read(self, workspace: Workspace, partitions: Sequence[Partition] = ()) -> DataFrame:
        """Return the rows of the given partitions, or all rows, with the declared columns if any."""


class ManagedRelation(Relation):
    """A relation that can be created, migrated and removed; by default there is nothing to do."""

    others: ClassVar[tuple[str, str]] = (
        "cannot be written or removed",
        "Name a relation that can be written: file, delta or table.",
    )
    """What an error says of a relation that is none of these, and what to do."""

    @classmethod
    def of(cls, relation: Relation, label: str) -> Self:
        """Return a relation that must be of this class.

        Args:
            relation: The relation.
            label: What names it, as messages call that.

        Raises:
            SpecError: It is of another kind.
        """
        if not isinstance(relation, cls):
            why, remedy = cls.others
            raise SpecError.of(f"a relation of kind {relation.kind!r} {why}", remedy=remedy, subject=label)
        return relation

    def create(self, workspace: Workspace) -> None:
        """Create it empty, unless it exists."""

    def migrate(self, workspace: Workspace, *, allow_data_loss: bool) -> None:
        """Migrate the existing relation to its declaration.

        Raises:
            MigrationError: The relation's migration strategy does not allow it.
            DataLossError: Rows or columns would be lost, and that is not permitted.
        """

    def destroy(self, workspace: Workspace) -> None:
        """Remove it with all its content, if it exists."""


class StoredRelation(ManagedRelation):
    """A relation that stores rows."""

    others: ClassVar[tuple[str, str]] = (
        "holds no rows of its own",
        "Name a relation that holds rows, or leave out the mapping of a target that only creates one.",
    )

    modes: ClassVar[frozenset[OutputMode]] = frozenset(OutputMode) - {OutputMode.UPDATE}

    appends_once: ClassVar[bool] = False
    """Whether an append can carry an identity, by which it is found and not done again."""

    @abstractmethod
    def write(
        self, workspace: Workspace, frame: DataFrame, *, partition: Partition, mode: OutputMode
    ) -> WriteSummary:
        """Write the rows, converted to the relation's columns; readers see them in one step.

        The target handles `IGNORE_IF_EXISTS` and `ERROR_IF_EXISTS`; they arrive here as `APPEND`.
        """

    def append(
        self,
        workspace: Workspace,
        frame: DataFrame,
        *,
        partition: Partition,
        append_id: str,
    ) -> WriteSummary:
        """Write the rows with mode APPEND, unless those of that identity are there."""
        return self.write(workspace, frame, partition=partition, mode=OutputMode.APPEND)

    def find_append(self, workspace: Workspace, append_id: str, partition: Partition) -> LandedCommit | None:
        """Return the append of that identity; None if there is none, or its rows are not there any more."""
        return None

    def open_columns(self, partition: Partition) -> list[str]:
        """Return the partition columns whose values the rows bring, if they are written to a partition.

        Raises:
            TargetError: The relation cannot write rows to a partition with these columns alone.
        """
        return [each.name for each in self.partitions if each.name not in partition]

    @abstractmethod
    def truncate(self, workspace: Workspace, partition: Partition | None = None) -> None:
        """Remove all rows, or those of a partition, and keep the relation itself."""

    def columns_after(self, partition: Partition, *, needs_all: bool = False) -> list[str]:
        """Return the partition columns after those of a partition, which has the first ones.

        Args:
            partition: The partition.
            needs_all: Whether it must have a value for each column.

        Raises:
            TargetError: The partition lacks the value of a column.
        """
        names = [each.name for each in self.partitions]
        if names[: len(partition)] != list(partition) or (needs_all and len(partition) < len(names)):
            missing = ", ".join(name for name in names if name not in partition)
            raise TargetError(
                f"{self.label}: rows cannot be written without a value for partition column {missing}",
                remedy="Add a value for it to the target's `partition`.",
            )
        return names[len(partition) :]
