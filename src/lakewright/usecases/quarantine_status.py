"""The bad rows that lie in the quarantine, for the status of a project."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from lakewright.app import App
from lakewright.errors import Fault
from lakewright.errors.phrase import Command, Phrase
from lakewright.lake.files import files_at
from lakewright.lake.lake import Lake
from lakewright.lake.paths import is_s3, join, local_path
from lakewright.manifest.item import Item, Verdict
from lakewright.manifest.lock import command
from lakewright.manifest.record import Application
from lakewright.manifest.store import Query
from lakewright.slices.application import application_of
from lakewright.slices.discover import called_name, item_id, natural_key, slice_name
from lakewright.spec.models.entity import Entity
from lakewright.spec.models.places import Places
from lakewright.spec.words import first_of
from lakewright.strategies.outdated import rebuild_command
from lakewright.usecases.placed import placed_entities

__all__ = ["Quarantined", "read_quarantined"]

MOST_NAMED = 3


@dataclass(frozen=True, slots=True)
class Quarantined:
    """The bad rows of an entity's processed slices that were put aside.

    Attributes:
        slices: Names of these slices.
        rows: Number of rows.
        folder: The folder that holds them.
        commands: The commands, to be typed in this order, that bring in the rows that fit by now; if some of
            the slices are corrected, those that are told of these.
        corrected: Names of those that have changed since they were processed.
        held: The commands for other slices of the entity that have changed: a rebuild refuses these.
        rest: The command for the slices that have not changed.
        by_hand: The commands for these slices once they are corrected, if nothing tells that they changed.
    """

    entity: str
    slices: tuple[str, ...]
    rows: int
    folder: str
    commands: tuple[Command, ...]
    corrected: tuple[str, ...] = ()
    held: tuple[Command, ...] = ()
    rest: Command | None = None
    by_hand: tuple[Command, ...] = ()

    @property
    def advice(self) -> str:
        """What to type about the rows."""
        typed = _in_turn(self.commands)
        if self.corrected:
            run = ", then the next run" if self.commands[-1].argv[0] == "manifest" else ""
            named = first_of(list(self.corrected), MOST_NAMED)
            told = Phrase(typed, f"{run} bring in the rows of {named} that fit.")
            if self.rest is None:
                return told
            rest = " brings in others that fit."
            return Phrase(told, " Once the declaration is corrected, then ", self.rest, rest)
        corrected = _in_turn(self.by_hand) or "it is told as changed, with the commands to type"
        held = ", and what is told of changed slices is done" if self.held else ""
        return Phrase(
            f"Once the declaration is corrected{held}, ",
            typed,
            " brings in the rows that fit. Once a slice is corrected, ",
            corrected,
            ".",
        )

    def as_json(self) -> dict[str, Any]:
        """Return the object that `status -o json` prints."""
        found = {"entity": self.entity, "slices": list(self.slices), "rows": self.rows, "folder": self.folder}
        return {**found, "do": [*self.held, *self.commands]}


def read_quarantined(app: App, changed: Collection[Fault] = ()) -> Iterator[Quarantined]:
    """Yield the bad rows that lie in the quarantine; only the items of their slices are read.

    Args:
        app: The project.
        changed: The faults of slices that have changed since they were processed, with the commands to type.
    """
    for entity, places in placed_entities(app):
        if entity.settings.on_bad_rows != "quarantine":
            continue
        application = application_of(app.project.name, entity)
        found: dict[str, tuple[str, int]] = {}
        for item in _quarantined_items(app, places, application):
            marks = (mark for mark in item.processed if mark.application.covers(application))
            rows = sum(int(mark.note.get("quarantined", 0)) for mark in marks)
            if rows:
                found[item.item_id] = (slice_name(item), rows)
        if found:
            names, counts = zip(*found.values(), strict=True)
            aside = Quarantined(entity.called, names, sum(counts), places.quarantine, ())
            of_entity = (
                e for e in changed if e.details["changed"][0].startswith(f"{item_id(places.bronze)}/")
            )
            fault = next(of_entity, None)
            ids = () if fault is None else fault.details["changed"]
            corrected = tuple(name for each, (name, _) in found.items() if each in ids)
            yield _with_commands(replace(aside, corrected=corrected), entity, fault)


def _with_commands(aside: Quarantined, entity: Entity, changed: Fault | None) -> Quarantined:
    """Return bad rows with the commands that bring them in: a rebuild refuses slices that have changed."""
    rebuild = rebuild_command(entity)
    if changed is None or not aside.corrected:
        is_told = entity.settings.changed_slices != "ignore"
        by_hand = () if is_told else (_requeue_command(entity, aside.slices), rebuild)
        held = () if changed is None else tuple(changed.details["again"])
        return replace(aside, commands=(rebuild,), by_hand=by_hand, held=held)
    again = tuple(changed.details["again"])
    is_rest = len(aside.corrected) < len(aside.slices) and again[-1].argv[:2] != rebuild.argv
    return replace(aside, commands=again, rest=rebuild if is_rest else None)


def _requeue_command(entity: Entity, names: Iterable[str]) -> Command:
    """Return the command that lets a rebuild apply these slices as they are then."""
    return command("requeue", *(called_name(entity.called, each) for each in names)).plus("--late")


def _in_turn(typed: Iterable[Command]) -> str:
    return Phrase.joined(", then ", typed)


def _quarantined_items(app: App, places: Places, application: Application) -> Iterable[Item]:
    """Return the items of the slices that have rows in the quarantine.

    Where only Spark can list its folder, these are all processed items of the entity.
    """
    try:
        names = sorted(_quarantined_slices(app.lake, places.quarantine), key=natural_key)
    except OSError:  # who may not list the folder still learns of its rows
        return app.store.select(Query(application, frozenset({Verdict.PROCESSED})))
    found = app.store.read([item_id(join(places.bronze, name)) for name in names])
    return (item for item in found.values() if item.verdict(application) is Verdict.PROCESSED)


def _quarantined_slices(lake: Lake, folder: str) -> set[str]:
    """Return the names of the folders in an entity's quarantine.

    Raises:
        OSError: It can't be listed, or only with Spark.
    """
    local = local_path(folder)
    if local is not None:
        return {entry.name for entry in local.iterdir()} if local.exists() else set()
    if not is_s3(folder):
        raise OSError(f"{folder} can't be listed without Spark")
    return {file.name.partition("/")[0] for file in files_at(folder, lake).listed(folder)}
