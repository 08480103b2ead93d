"""Slices that have changed since they were processed, with the commands to type."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from lakewright.errors import Fault
from lakewright.manifest.item import Verdict
from lakewright.slices.application import application_of
from lakewright.slices.changed import find_deviations
from lakewright.slices.context import ALL_SLICES, ProcessingContext, ProcessingOptions, SliceSelection
from lakewright.slices.deviations import Deviations, changed_items
from lakewright.slices.discover import (
    Listing,
    item_id,
    list_bronze,
)
from lakewright.slices.other_runs import (
    declared_strategy,
    declared_time,
    find_other_runs,
    processing_jobs,
)
from lakewright.spec.models.entity import Entity
from lakewright.usecases.placed import chain_of
from lakewright.usecases.readers import dependents
from lakewright.usecases.slice_times.declared_times import declared_slice_time

if TYPE_CHECKING:
    from lakewright.app import App
    from lakewright.manifest.item import Item
    from lakewright.slices.chain import SliceChain

__all__ = ["changed_fault"]

_NONE = SliceSelection("")
"""Takes no slice."""


def changed_fault(app: App, entity: Entity) -> Fault | None:
    """Return the slices of an entity that changed since they were processed, with the commands to type.

    None if there is none.

    Raises:
        StorageUnavailable: The bronze folder can't be read.
    """
    chain = chain_of(app, entity)
    listing = list_bronze(chain.bronze, app.lake)
    items = app.store.read([item_id(each.path) for each in listing.slices])
    found = _changed(app, chain, listing, items)
    return None if found is None else found.fault


def _changed(app: App, chain: SliceChain, listing: Listing, present: Mapping[str, Item]) -> Deviations | None:
    """Return the deviations of processed and skipped slices that have changed; None if none has."""
    verdicts = (Verdict.PROCESSED, Verdict.SKIPPED)
    done = (item for item in present.values() if item.verdict(chain.application) in verdicts)
    if next(changed_items(done, listing.slices), None) is None:
        return None
    found = find_deviations(_context(app, chain.entity), chain.entity, listing, present)
    return replace(found, listing=Listing(listing.slices))


def _context(app: App, entity: Entity) -> ProcessingContext:
    """Return the context of a run of a job that processes an entity, in an instance that takes no slice.

    Deviations are thereby told as in the report of a run that leaves them to others.
    """
    jobs = list(processing_jobs(app.project, entity.called))
    options = ProcessingOptions(
        other_runs=partial(find_other_runs, app.project, entity.called, dependents=partial(dependents, app)),
        declared_time=partial(declared_slice_time, app, entity.called),
    )
    timed = [each for each in jobs if declared_time(each[1]) is not None]
    for job, declared in (*timed, *jobs)[:1]:
        is_limited = not {"slices", "until"}.isdisjoint(declared)
        options = replace(
            options,
            strategy=declared_strategy(declared, entity),
            processing_time=declared_time(declared),
            scope=app.project.job_scope(job),
            selection=_NONE if is_limited else ALL_SLICES,
        )
    application = application_of(app.project.name, entity)
    return ProcessingContext(app.lake, app.ledger, app.holder, application, app.store.now, options=options)
