"""Slices that tables hold and the manifest does not know of, as after it was restored from an older backup.

The next run of their entity records them as the table's log tells, without processing them: they do not wait.
Only tables in folders of this machine are looked at.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from lakewright.errors import LakewrightError
from lakewright.lake.paths import local_path
from lakewright.manifest.item import Verdict
from lakewright.plan.other_runs import commands_of
from lakewright.slices.application import application_of
from lakewright.slices.discover import slice_name
from lakewright.slices.other_runs import entity_name, find_other_runs
from lakewright.slices.recover_from_log import as_if_recovered
from lakewright.slices.rewind.unrecorded import unrecorded_items
from lakewright.spec.words import counted, first_of
from lakewright.usecases.placed import placed_entities
from lakewright.usecases.staleness.readers import dependents

if TYPE_CHECKING:
    from lakewright.app import App
    from lakewright.manifest.item import Item
    from lakewright.spec.models.entity import Entity
    from lakewright.spec.models.places import Places

__all__ = [
    "Unrecorded",
    "as_after_recovery",
    "items_after_recovery",
    "recording_commands",
    "unrecorded_slices",
]

MOST_NAMED = 3


@dataclass(frozen=True, slots=True)
class Unrecorded:
    """Slices of an entity that the next run records from the table's log.

    Attributes:
        items: Their items as they are then, in the order of their slices.
        undone: Names of those that were undone, and are recorded as skipped.
        again: Names of those that were undone, and are then processed again.
        commands: The commands that record them.
    """

    entity: str
    items: tuple[Item, ...]
    commands: tuple[str, ...]
    undone: tuple[str, ...] = ()
    again: tuple[str, ...] = ()

    @property
    def slices(self) -> tuple[str, ...]:
        """The names of the slices that the table holds."""
        gone = {*self.undone, *self.again}
        return tuple(name for name in map(slice_name, self.items) if name not in gone)

    @property
    def words(self) -> str:
        """Which slices the table holds, and which were undone."""
        told = []
        if self.slices:
            told.append(f"{counted(len(self.slices), 'slice')}: {first_of(self.slices, MOST_NAMED)}")
        if self.undone:
            was = "1 slice was" if len(self.undone) == 1 else f"{len(self.undone)} slices were"
            told.append(f"{was} undone, to be recorded as skipped: {first_of(self.undone, MOST_NAMED)}")
        if self.again:
            was = "1 slice was" if len(self.again) == 1 else f"{len(self.again)} slices were"
            told.append(f"{was} undone, to be processed again: {first_of(self.again, MOST_NAMED)}")
        return "; ".join(told)

    def as_json(self) -> dict[str, Any]:
        """Return the object that `status -o json` prints."""
        return {
            "entity": self.entity,
            "slices": list(self.slices),
            "undone": list(self.undone),
            "again": list(self.again),
            "do": list(self.commands),
        }


def unrecorded_slices(app: App) -> Iterator[Unrecorded]:
    """Yield the entities whose tables hold slices that the manifest does not know of."""
    for entity, places in placed_entities(app):
        try:
            found = _unrecorded(app, entity, places) if entity.enabled else ()
        except LakewrightError:  # what can't be read is told by itself
            continue
        if found:
            application = application_of(app.project.name, entity)
            names = {
                verdict: tuple(slice_name(item) for item in found if item.verdict(application) is verdict)
                for verdict in (Verdict.SKIPPED, Verdict.READY)
            }
            commands = recording_commands(app, entity, list(map(slice_name, found)))
            undone, again = names[Verdict.SKIPPED], names[Verdict.READY]
            yield Unrecorded(entity.called, found, commands, undone, again)


def recording_commands(app: App, entity: Entity, names: Sequence[str]) -> tuple[str, ...]:
    """Return the commands that record slices: others of a job's targets may add rows in every build."""
    runs = find_other_runs(app.project, entity.called, names, partial(dependents, app))
    found: list[str] = []
    for job in dict.fromkeys(run.job for run in runs):
        options = [text for target in _targets(app, entity, job) for text in ("-t", target)]
        found += commands_of([run for run in runs if run.job == job], options=options)
    return tuple(found) or (f"lakewright process {shlex.quote(entity.called)}",)


def _targets(app: App, entity: Entity, job: str) -> Iterator[str]:
    """Yield the targets of a job that process an entity."""
    for name in app.project.jobs[job].targets:
        definition = app.project.targets.get(name)
        if definition is None or definition.kind != "entity":
            continue
        if entity_name(app.project, definition.raw) == entity.called:
            yield name


def items_after_recovery(unrecorded: Iterable[Unrecorded]) -> dict[str, Item]:
    """Return the items of unrecorded slices as they are after the next run, by id."""
    return {item.item_id: item for each in unrecorded for item in each.items}


def as_after_recovery(app: App, entity: Entity, items: Mapping[str, Item]) -> dict[str, Item]:
    """Return items of an entity as they are once the next run has read the table's log."""
    silver, application = entity.places(app.project.lake).silver, application_of(app.project.name, entity)
    return {**items, **as_if_recovered(app.lake, app.ledger, silver, items.values(), application)}


def _unrecorded(app: App, entity: Entity, places: Places) -> tuple[Item, ...]:
    if places.silver.location is None or local_path(places.silver.location) is None:
        return ()
    application, is_listed = application_of(app.project.name, entity), local_path(places.bronze) is not None
    return unrecorded_items(app.lake, app.ledger, places, application, entity.called, lists_bronze=is_listed)
