"""The bad rows that lie in the quarantine, for the status of a project."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from lakewright.app import App
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
        commands: The commands of which each brings in the rows that fit by now: they apply the slices again.
    """

    entity: str
    slices: tuple[str, ...]
    rows: int
    folder: str
    commands: tuple[str, ...]

    @property
    def advice(self) -> str:
        """What to type about the rows."""
        either = " or ".join(f"`{each}`" for each in self.commands)
        return f"Once the slice or the declaration is corrected, {either} brings in the rows that fit."

    def as_json(self) -> dict[str, Any]:
        """Return the object that `status -o json` prints."""
        found = {"entity": self.entity, "slices": list(self.slices), "rows": self.rows, "folder": self.folder}
        return {**found, "do": list(self.commands)}


def read_quarantined(app: App) -> Iterator[Quarantined]:
    """Yield the bad rows that lie in the quarantine; only the items of their slices are read."""
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
            commands = (rebuild_command(entity), _requeue_command(entity, found))
            yield Quarantined(entity.called, tuple(found), sum(found.values()), places.quarantine, commands)


def _requeue_command(entity: Entity, names: Iterable[str]) -> str:
    """Return the command that has the first of these slices, and all after it, processed again."""
    return f"{command('requeue', called_name(entity.called, min(names, key=natural_key)))} --cascade"


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
