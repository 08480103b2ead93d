"""Slices that tables hold and the manifest does not know of, as after it was restored from an older backup.

The next run of their entity records them as the table's log tells, without processing them: they do not wait.
Only tables in folders of this machine are looked at.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from lakewright.errors import LakewrightError
from lakewright.errors.phrase import Command
from lakewright.lake.paths import local_path
from lakewright.manifest.item import Verdict
from lakewright.plan.other_runs import commands_of
from lakewright.slices.discover import slice_name
from lakewright.slices.other_runs import entity_targets, find_other_runs
from lakewright.slices.recover_from_log import unrecorded_items
from lakewright.spec.words import counted, first_of
from lakewright.usecases.placed import chain_of, placed_entities
from lakewright.usecases.staleness.readers import dependents

if TYPE_CHECKING:
    from lakewright.app import App
    from lakewright.manifest.item import Item
    from lakewright.slices.chain import SliceChain
    from lakewright.spec.models.entity import Entity

__all__ = [
    "Unrecorded",
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
    commands: tuple[Command, ...]
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
    for entity, _ in placed_entities(app):
        chain = chain_of(app, entity)
        try:
            found = _unrecorded(chain) if entity.enabled else ()
        except LakewrightError:  # what can't be read is told by itself
            continue
        if found:
            names = {
                verdict: tuple(
                    slice_name(item) for item in found if item.verdict(chain.application) is verdict
                )
                for verdict in (Verdict.SKIPPED, Verdict.READY)
            }
            commands = recording_commands(app, entity, list(map(slice_name, found)))
            undone, again = names[Verdict.SKIPPED], names[Verdict.READY]
            yield Unrecorded(entity.called, found, commands, undone, again)


def recording_commands(app: App, entity: Entity, names: Sequence[str]) -> tuple[Command, ...]:
    """Return the commands that record slices: others of a job's targets may add rows in every build."""
    runs = find_other_runs(app.project, entity.called, names, partial(dependents, app))
    found: list[Command] = []
    for job in dict.fromkeys(run.job for run in runs):
        targets = entity_targets(app.project, entity.called, app.project.jobs[job].targets)
        options = [text for target, _ in targets for text in ("-t", target)]
        found += commands_of([run for run in runs if run.job == job], options=options)
    return tuple(found) or (Command("process", entity.called),)


def items_after_recovery(unrecorded: Iterable[Unrecorded]) -> dict[str, Item]:
    """Return the items of unrecorded slices as they are after the next run, by id."""
    return {item.item_id: item for each in unrecorded for item in each.items}


def _unrecorded(chain: SliceChain) -> tuple[Item, ...]:
    if chain.silver.location is None or local_path(chain.silver.location) is None:
        return ()
    return unrecorded_items(chain, lists_bronze=local_path(chain.bronze) is not None)
