"""What every relation is: something to read, and perhaps to create, write, empty and remove."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import Field as Declared

from lakewright.errors import SpecError
from lakewright.lake.partition import Partition
from lakewright.plan.observation import Observation
from lakewright.plan.resource import Resource
from lakewright.schemas.schema import Schema
from lakewright.spec.models.base import KindOf, Listed, Named, Reference
from lakewright.spec.models.documentation import Documentation
from lakewright.spec.models.fields import Field, PartitionField

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakewright.workspace.workspace import Source, Workspace

__all__ = ["ManagedRelation", "OutputMode", "Relation", "StoredRelation", "WriteSummary"]


class OutputMode(StrEnum):
    """What a write does with what is there already."""

    OVERWRITE = "OVERWRITE"
    OVERWRITE_DYNAMIC = "OVERWRITE_DYNAMIC"
    APPEND = "APPEND"
    UPDATE = "UPDATE"
    IGNORE_IF_EXISTS = "IGNORE_IF_EXISTS"
    ERROR_IF_EXISTS = "ERROR_IF_EXISTS"

    @classmethod
    def parse(cls, text: str) -> OutputMode:
        """Return the mode that a text names; case and underscores don't matter.

        Raises:
            ValueError: There is no such mode.

        Example:
            >>> OutputMode.parse("dynamic_overwrite").value
            'OVERWRITE_DYNAMIC'
        """
        wanted = text.replace("_", "").upper()
        wanted = _OTHER_NAMES.get(wanted, wanted)
        for mode in cls:
            if mode.replace("_", "") == wanted:
                return mode
        raise ValueError(f"no output mode {text!r}; there are {', '.join(cls)}")


_OTHER_NAMES = {
    "DYNAMICOVERWRITE": "OVERWRITEDYNAMIC",
    "UPSERT": "UPDATE",
    "IGNORE": "IGNOREIFEXISTS",
    "ERROR": "ERRORIFEXISTS",
}


@dataclass(frozen=True, slots=True)
class WriteSummary:
    """What a write did.

    Attributes:
        rows: Rows written.
        version: Of the Delta table after it, where it is one.
    """

    rows: int
    version: int | None = None


class Relation(Named):
    """A relation as declared; of this kind alone it can only be read."""

    description: str | None = Declared(default=None, description="What it holds, for people.")
    declared_schema: Annotated[Schema, KindOf("schema", default="inline")] | None = Declared(
        default=None, alias="schema", description="Its columns; found in what is there unless given."
    )
    partitions: Listed[PartitionField] = Declared(default=(), description="Columns that divide it.")
    documentation: Documentation | None = Declared(
        default=None, exclude=True, description="What the documentation shows; checks."
    )
    metadata: Any = Declared(default=None, description="Labels of the author's own.")

    @classmethod
    def named(cls, workspace: Workspace, reference: str | Source) -> Relation:
        """Return the relation that a definition names or holds.

        Raises:
            SpecError: There is none of that name.
        """
        found = workspace.relation(reference) if isinstance(reference, str) else reference
        if not isinstance(found, Relation):
            raise SpecError.of(
                f"relation {found.name!r} is another project's",
                remedy="Read it by a mapping; only that project writes it.",
            )
        return found

    def references(self) -> Iterable[Reference]:
        """Return what its schema names."""
        if self.declared_schema is None:
            return []
        return [
            Reference(inner.category, inner.name, ("schema", *inner.path))
            for inner in self.declared_schema.references()
        ]

    def mentions(self) -> Iterable[Reference]:
        """Return what its checks refer to."""
        return () if self.documentation is None else self.documentation.references()

    @property
    def label(self) -> str:
        """The relation in messages."""
        return f"relation {self.name!r}" if self.name else f"the {self.kind} relation"

    def declared(self, workspace: Workspace) -> tuple[Field, ...] | None:
        """Return the declared columns, with partition columns at the end unless they stand among them."""
        if self.declared_schema is None:
            return None
        fields = self.declared_schema.fields(workspace)
        names = {field.name.lower() for field in fields}
        return (*fields, *(each.as_field() for each in self.partitions if each.name.lower() not in names))

    def fields(self, workspace: Workspace) -> tuple[Field, ...]:
        """Return its columns: declared, else as reading finds them."""
        from lakewright.lake.columns import fields_of

        declared = self.declared(workspace)
        return fields_of(self.read(workspace).schema) if declared is None else declared

    def requires(self, workspace: Workspace) -> frozenset[Resource]:
        """Return what must be there before it can be created."""
        mappings = self.declared_schema.mappings() if self.declared_schema else ()
        return frozenset().union(*(workspace.required(name) for name in mappings))

    def version(self, workspace: Workspace, partitions: Sequence[Partition] = ()) -> str | None:
        """Return a text that differs whenever its content does; None where that can't be told."""
        del workspace, partitions
        return None

    def table_sql(self, workspace: Workspace) -> str | None:
        """Return how a query of the catalog names it, or None where none can."""
        del workspace
        return None

    @abstractmethod
    def resources(self, workspace: Workspace, partition: Partition | None = None) -> frozenset[Resource]:
        """Return what writing it, or a partition of it, provides and reading it requires."""

    @abstractmethod
    def observe(self, workspace: Workspace, partition: Partition | None = None) -> Observation:
        """Return whether it is there, filled and as declared; what fails is in the observation's `error`."""

    @abstractmethod
    def read(self, workspace: Workspace, partitions: Sequence[Partition] = ()) -> DataFrame:
        """Return its rows, of these partitions or of all, with its declared columns if it has any."""


class ManagedRelation(Relation):
    """A relation that can be created, migrated and removed."""

    @abstractmethod
    def create(self, workspace: Workspace) -> None:
        """Make it, empty; nothing happens if it is there."""

    @abstractmethod
    def migrate(self, workspace: Workspace, *, allow_data_loss: bool) -> None:
        """Make what is there as declared.

        Raises:
            MigrationError: That can't be done by the relation's migration strategy.
            DataLossError: It would lose rows or columns, without leave.
        """

    @abstractmethod
    def destroy(self, workspace: Workspace) -> None:
        """Remove it with all it holds; nothing happens if it isn't there."""


class StoredRelation(ManagedRelation):
    """A relation that holds rows."""

    modes: ClassVar[frozenset[OutputMode]] = frozenset(OutputMode) - {OutputMode.UPDATE}

    @abstractmethod
    def write(
        self, workspace: Workspace, frame: DataFrame, *, partition: Partition, mode: OutputMode
    ) -> WriteSummary:
        """Write the rows in one step for readers, converted to the relation's columns.

        `IGNORE_IF_EXISTS` and `ERROR_IF_EXISTS` are the target's to decide; they arrive as `APPEND`.
        """

    @abstractmethod
    def truncate(self, workspace: Workspace, partition: Partition | None = None) -> None:
        """Remove its rows, or a partition's; it stays."""
