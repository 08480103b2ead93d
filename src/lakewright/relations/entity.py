"""The `entity` relation: reads an entity's silver table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from pydantic import Field as Declared

from lakewright.errors import LakewrightError, TargetError
from lakewright.lake.observation import observe_table, read_table
from lakewright.lake.partition import Partition
from lakewright.lake.table_state import TableState
from lakewright.plan.observation import Answer, Observation
from lakewright.plan.resource import Resource
from lakewright.relations.relation import Relation
from lakewright.spec.models.base import Reference
from lakewright.spec.models.entity import Entity, Strategy
from lakewright.spec.models.fields import Field
from lakewright.spec.models.places import Address
from lakewright.transform.system_columns import SystemColumns
from lakewright.workspace.query import all_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakewright.workspace.workspace import Workspace

__all__ = ["EntityRelation"]


class EntityRelation(Relation):
    """Reads an entity's silver table; only the entity's target writes it."""

    entity: str = Declared(description="Name of the entity.")
    current: bool = Declared(
        default=False, description="Only current rows: the current versions that are not deleted."
    )

    def references(self) -> Iterable[Reference]:
        """Return the entity."""
        return [Reference("entity", self.entity, ("entity",))]

    def found(self, workspace: Workspace) -> Entity:
        """Return the entity."""
        return workspace.entity(self.entity)

    def address(self, workspace: Workspace) -> Address:
        """Return the location of the silver table."""
        return self.found(workspace).places(workspace.lake.settings).silver

    def table_sql(self, workspace: Workspace) -> str | None:
        """Return the table's address in SQL; for current rows, a query in parentheses."""
        table = self.address(workspace).sql
        return f"({all_rows(table, self._current_sql(workspace))})" if self.current else table

    def resources(self, workspace: Workspace, partition: Partition | None = None) -> frozenset[Resource]:
        """Return the silver table, which is always read as a whole."""
        del partition
        address = self.address(workspace)
        if address.location is not None:
            return frozenset({Resource.file(address.location)})
        return frozenset({Resource.table(str(address.name))})

    def observe(self, workspace: Workspace, partition: Partition | None = None) -> Observation:
        """Return whether the table exists and has rows."""
        (subject,) = self.resources(workspace, partition)
        try:
            state = observe_table(workspace.lake, self.address(workspace))
        except LakewrightError as error:
            return Observation(str(subject), error=error.message)
        filled = None if state.is_empty is None else not state.is_empty
        return Observation(str(subject), exists=Answer.of(state.exists), filled=Answer.of(filled))

    def version(self, workspace: Workspace, partitions: Sequence[Partition] = ()) -> str | None:
        """Return the table's version."""
        del partitions
        return str(observe_table(workspace.lake, self.address(workspace)).version)

    def fields(self, workspace: Workspace) -> tuple[Field, ...]:
        """Return the columns of the table, including system columns."""
        return self._present(workspace).columns

    def read(self, workspace: Workspace, partitions: Sequence[Partition] = ()) -> DataFrame:
        """Return all rows, or with `current` the current ones.

        Raises:
            TargetError: The entity has no table yet.
        """
        del partitions
        self._present(workspace)
        frame = read_table(workspace.spark, self.address(workspace))
        if not self.current:
            return frame
        return frame.where(self._current_sql(workspace))

    def _current_sql(self, workspace: Workspace) -> str:
        entity = self.found(workspace)
        system = SystemColumns(workspace.lake.settings.systemfield_prefix, entity.destination)
        return system.current_sql(has_history=entity.strategy is Strategy.HISTORIC)

    def _present(self, workspace: Workspace) -> TableState:
        state = observe_table(workspace.lake, self.address(workspace))
        if not state.exists:
            raise TargetError(
                f"{self.label}: entity {self.entity!r} has no silver table yet",
                remedy="Run a target of kind entity before the targets that read it.",
            )
        return state
