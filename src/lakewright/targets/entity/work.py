"""An entity within one run: its locations, its slices' application and the options to process them with."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakewright.lake.observation import observe_table
from lakewright.slices.application import application_of
from lakewright.slices.chain import SliceChain
from lakewright.slices.context import ALL_SLICES, ProcessingContext, ProcessingOptions, SliceSelection
from lakewright.slices.discovery import settle_of
from lakewright.spec.models.entity import Entity, Strategy
from lakewright.strategies.adoption import is_adoptable
from lakewright.targets.context import Context
from lakewright.targets.lease import hold_leases, table_resource

if TYPE_CHECKING:
    from lakewright.lake.delta_log import TableState
    from lakewright.lake.lake import Lake
    from lakewright.plan.resource import Resource
    from lakewright.spec.models.places import Address


def processing_context(context: Context, entity: Entity, options: ProcessingOptions) -> ProcessingContext:
    """Return the context in which an entity's slices are processed."""
    return ProcessingContext(
        lake=context.workspace.lake,
        ledger=context.ledger,
        holder=context.leases.holder,
        application=application_of(context.workspace.project.name, entity),
        clock=context.clock,
        lease=context.leases.duration,
        takeover=context.takeover,
        is_stopping=context.is_stopping,
        is_cut_off=context.is_cut_off,
        warn=context.warn,
        show=context.show,
        report=context.report,
        options=options,
    )


@dataclass(frozen=True, slots=True)
class EntityWork:
    """An entity with the run that works on it.

    Attributes:
        label: The target, as messages name it.
        strategy: The strategy to use instead of the entity's own.
        processing_time: ISO 8601 text, or an expression that gives one for each slice.
        selection: The slices that the target takes.
    """

    context: Context
    entity: Entity
    label: str
    strategy: Strategy | None = None
    processing_time: str | None = None
    selection: SliceSelection = ALL_SLICES

    @property
    def lake(self) -> Lake:
        """The lake that holds the silver table."""
        return self.context.workspace.lake

    @property
    def silver(self) -> Address:
        """The address of the silver table."""
        return self.entity.places(self.lake.settings).silver

    @property
    def silver_resource(self) -> Resource:
        """The silver table as a resource that is read, written and leased."""
        return table_resource(self.silver)

    @property
    def processing(self) -> ProcessingContext:
        """The context in which the slices are processed."""
        options = ProcessingOptions(
            strategy=self.strategy,
            processing_time=self.processing_time,
            scope=self.context.workspace.scope,
            permissions=self.context.options.permissions,
            wait=self.context.options.wait,
            selection=self.selection,
            settle=settle_of(self.context.workspace.project.config),
        )
        return processing_context(self.context, self.entity, options)

    def table_state(self) -> TableState:
        """Return the present state of the silver table."""
        return observe_table(self.lake, self.silver)

    def is_adoptable(self, state: TableState) -> bool:
        """Return whether the silver table was written by another program and may be adopted by the entity."""
        return is_adoptable(self.entity, state)

    @property
    def chain(self) -> SliceChain:
        """The slices of the entity."""
        return self.processing.chain(self.entity)

    def silver_lease(self) -> AbstractContextManager[None]:
        """Hold the lease on the silver table."""
        return hold_leases(self.context, frozenset({self.silver_resource}))
