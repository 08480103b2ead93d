"""The bad rows that lie in the quarantine, for the status of a project."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from lakewright.app import App
from lakewright.errors import Fault
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
from lakewright.strategies.outdated import rebuild_command
from lakewright.usecases.placed import placed_entities

__all__ = ["Quarantined", "read_quarantined"]


@dataclass(frozen=True, slots=True)
class Quarantined:
    """The bad rows of an entity's processed slices that were put aside.

    Attributes:
        slices: Names of these slices.
        rows: Number of rows.
        folder: The folder that holds them.
        commands: The commands, to be typed in this order, that bring in the rows that fit by now.
        is_changed: Whether slices of the entity have changed since they were processed: the first commands
            are then those that are told of these.
        by_hand: The commands for these slices once they are corrected, if nothing tells that they changed.
    """

    entity: str
    slices: tuple[str, ...]
    rows: int
    folder: str
    commands: tuple[str, ...]
    is_changed: bool = False
    by_hand: tuple[str, ...] = ()

    @property
    def advice(self) -> str:
        """What to type about the rows."""
        typed = _in_turn(self.commands)
        if self.is_changed:
            run = ", then the next run" if self.commands[-1].startswith("lakewright manifest ") else ""
            return f"{typed}{run} bring in the rows that fit."
        corrected = _in_turn(self.by_hand) or "it is told as changed, with the commands to type"
        return (
            f"Once the declaration is corrected, {typed} brings in the rows that fit. "
            f"Once a slice is corrected, {corrected}."
        )

    def as_json(self) -> dict[str, Any]:
        """Return the object that `status -o json` prints."""
        found = {"entity": self.entity, "slices": list(self.slices), "rows": self.rows, "folder": self.folder}
        return {**found, "do": list(self.commands)}


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
        found: dict[str, int] = {}
        for item in _quarantined_items(app, places, application):
            marks = (mark for mark in item.processed if mark.application.covers(application))
            rows = sum(int(mark.note.get("quarantined", 0)) for mark in marks)
            if rows:
                found[slice_name(item)] = rows
        if found:
            aside = Quarantined(entity.called, tuple(found), sum(found.values()), places.quarantine, ())
            yield _with_commands(aside, entity, item_id(places.bronze), changed)


def _with_commands(
    aside: Quarantined, entity: Entity, bronze: str, changed: Collection[Fault]
) -> Quarantined:
    """Return bad rows with the commands that bring them in: a rebuild refuses slices that have changed."""
    rebuild = rebuild_command(entity)
    of_entity = (each for each in changed if each.details["changed"][0].startswith(f"{bronze}/"))
    if (fault := next(of_entity, None)) is None:
        is_told = entity.settings.changed_slices != "ignore"
        by_hand = () if is_told else (_requeue_command(entity, aside.slices), rebuild)
        return replace(aside, commands=(rebuild,), by_hand=by_hand)
    again = tuple(fault.details["again"])
    is_built = again[-1].startswith(rebuild)
    is_all = {f"{bronze}/{name}" for name in aside.slices} <= set(fault.details["changed"])
    rest = () if is_built or is_all else (rebuild,)
    return replace(aside, commands=(*again, *rest), is_changed=True)


def _requeue_command(entity: Entity, names: Iterable[str]) -> str:
    """Return the command that lets a rebuild apply these slices as they are then."""
    return f"{command('requeue', *(called_name(entity.called, each) for each in names))} --late"


def _in_turn(typed: Iterable[str]) -> str:
    return ", then ".join(f"`{each}`" for each in typed)


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
