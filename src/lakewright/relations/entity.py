"""The `entity` relation: reads an entity's silver table."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import Field as Declared

from lakewright.errors import LakewrightError, SpecError, TargetError
from lakewright.lake.commit import read_table_at
from lakewright.lake.delta_log import TableState
from lakewright.lake.observation import observe_table, read_table
from lakewright.lake.partition import Partition
from lakewright.lake.storage_errors import failed_observation
from lakewright.manifest.record import parse_instant_in
from lakewright.plan.observation import Answer, Observation
from lakewright.plan.resource import Resource
from lakewright.relations.relation import Relation
from lakewright.spec.expressions.values import with_offset
from lakewright.spec.models.base import RefersTo, from_text
from lakewright.spec.models.entity import Entity, Strategy
from lakewright.spec.models.fields import Field
from lakewright.spec.models.places import Address
from lakewright.transform.steps import instant_sql
from lakewright.transform.system_columns import SystemColumns
from lakewright.workspace.query import all_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lakewright.lake.lake import Lake
    from lakewright.spec.models.lake import LakeSettings
    from lakewright.workspace.workspace import Workspace


class EntityRelation(Relation):
    """Reads an entity's silver table; only the entity's target writes it."""

    keeps_past: ClassVar[bool] = True

    entity: Annotated[str, RefersTo.ENTITY] = Declared(description="Name of the entity.")
    current: bool = Declared(default=False, description="Only current rows that are not deleted.")

    as_of: Annotated[str, from_text(with_offset)] | None = Declared(
        default=None,
        description="Rows that were valid at this time (ISO 8601); without history, the table's rows at "
        "this time.",
    )

    def found(self, workspace: Workspace) -> Entity:
        """Return the entity."""
        return workspace.entity(self.entity)

    def address(self, workspace: Workspace) -> Address:
        """Return the location of the silver table."""
        return self.found(workspace).places(workspace.layout).silver

    def table_sql(self, workspace: Workspace) -> str | None:
        """Return the table's address in SQL; for some of its rows, a query in parentheses.

        Rows of an earlier time have none, except those of an entity with history.
        """
        entity, at = self.found(workspace), self._at(workspace)
        if at is not None and entity.strategy is not Strategy.HISTORIC:
            return None
        table = self.address(workspace).sql
        system = SystemColumns(workspace.layout.systemfield_prefix, entity.destination)
        has_history = entity.strategy is Strategy.HISTORIC
        condition = _condition(system, at, has_history=has_history, is_current=self.current)
        return table if condition is None else f"({all_rows(table, condition)})"

    def resources(self, workspace: Workspace, partition: Partition | None = None) -> frozenset[Resource]:
        """Return the silver table, which is always read as a whole."""
        return frozenset({Resource.at(self.address(workspace))})

    def observe(self, workspace: Workspace, partition: Partition | None = None) -> Observation:
        """Return whether the table exists and has rows."""
        (subject,) = self.resources(workspace, partition)
        try:
            state = observe_table(workspace.lake, self.address(workspace))
        except LakewrightError as error:
            return failed_observation(str(subject), error)
        filled = None if state.is_empty is None else not state.is_empty
        return Observation(str(subject), exists=Answer.of(state.exists), filled=Answer.of(filled))

    def fields(self, workspace: Workspace) -> tuple[Field, ...]:
        """Return the columns of the table, including system columns."""
        return self._present(workspace).columns

    def read(self, workspace: Workspace, partitions: Sequence[Partition] = ()) -> DataFrame:
        """Return all rows, or with `current` the current ones.

        Raises:
            TargetError: The entity has no table yet.
        """
        self._present(workspace)
        entity, at, layout = self.found(workspace), self._at(workspace), workspace.layout
        return read_silver(
            workspace.lake, workspace.spark, entity, layout=layout, at=at, current=self.current
        )

    def _at(self, workspace: Workspace) -> datetime | None:
        """Return the time at which the table is read.

        Raises:
            SpecError: `asOf` is no time.
        """
        if self.as_of is None:
            past = workspace.lake.past
            return None if past is None else past.at
        at = parse_instant_in(self.as_of, workspace.layout.zone)
        if at is None:
            raise SpecError.of(
                f"asOf: {self.as_of!r} is no time",
                remedy="Give it in ISO 8601, such as 2024-05-01 or 2024-05-01T06:00:00+02:00.",
                subject=self.label,
            )
        return at

    def _present(self, workspace: Workspace) -> TableState:
        home = workspace.project
        job = f"the job of project {home.name} in {home.basedir} that has the entity's target"
        own = "the whole job again, with the entity's target before those that read its table"
        what = job if workspace.is_imported else own
        return observe_silver(workspace.lake, self.found(workspace), layout=workspace.layout, next_run=what)


def observe_silver(
    lake: Lake,
    entity: Entity,
    *,
    layout: LakeSettings | None = None,
    next_run: str = "a job with the entity's target",
) -> TableState:
    """Return the state of an entity's table.

    Args:
        lake: The lake.
        entity: The entity.
        layout: The lake of the entity's project; default: the settings of `lake`.
        next_run: The job that makes the table.

    Raises:
        TargetError: There is no table yet.
    """
    state = observe_table(lake, entity.places(layout or lake.settings).silver)
    if not state.exists:
        raise TargetError(
            f"entity {entity.name!r} has no silver table yet",
            remedy=f"The first slice creates it. Once one has arrived, run {next_run}.",
        )
    return state


def read_silver(
    lake: Lake,
    session: SparkSession,
    entity: Entity,
    *,
    layout: LakeSettings | None = None,
    at: datetime | None = None,
    current: bool = False,
) -> DataFrame:
    """Return the rows of an entity's table, now or at a time.

    Args:
        lake: The lake.
        session: The session that reads.
        entity: The entity, whose table exists.
        layout: The lake of the entity's project; default: the settings of `lake`.
        at: A time. A table with history then has the versions that were valid at that time, which are the
            current ones of that time. Another has the rows that it had, as far as Delta keeps them.
        current: Only current rows.

    Raises:
        TargetError: The log of a table without history doesn't reach back so far.
    """
    layout = layout or lake.settings
    address = entity.places(layout).silver
    system = SystemColumns(layout.systemfield_prefix, entity.destination)
    frame = read_table(session, address)
    if at is not None and not system.has_history(frame.columns):
        frame, at = read_table_at(lake, session, address, at), None
    has_history = system.has_history(frame.columns)
    condition = _condition(system, at, has_history=has_history, is_current=current)
    return frame if condition is None else frame.where(condition)


def _condition(
    system: SystemColumns, at: datetime | None, *, has_history: bool, is_current: bool
) -> str | None:
    """Return SQL of which rows of an entity's table are read; None for all."""
    if at is not None and has_history:
        return system.valid_sql(instant_sql(at))
    return system.current_sql(has_history=has_history) if is_current else None
