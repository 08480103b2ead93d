"""Slices in a project's manifest, as runs record them, without a run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

from tests.silver import make_empty_silver

from lakewright.app import App
from lakewright.errors import SliceError
from lakewright.manifest.claim import Claim
from lakewright.manifest.item import Item
from lakewright.manifest.ledger import DiscoveredSlice
from lakewright.manifest.payload import failure
from lakewright.slices.application import application_of
from lakewright.slices.discovery import item_id
from lakewright.spec.models.entity import Strategy
from lakewright.strategies.summary import Summary

METRICS = Summary(
    Strategy.MERGE, records_in_slice=10, inserted=6, updated=3, deleted=1, delta_version=1, seconds=1.5
).as_json()
"""What a slice that was processed has in its record: under the names that runs use."""


def discover(app: App, entity: str, names: Iterable[str], **more: Any) -> list[Item]:
    """Record slices as found in bronze."""
    found = app.project.entity(entity)
    application = application_of(app.project.name, found)
    bronze = found.places(app.project.lake).bronze
    Path(bronze).mkdir(parents=True, exist_ok=True)
    slices = [
        DiscoveredSlice(
            item_id(f"{bronze}/{name}"), application, entity, name, {"size": 100 + number, **more}
        )
        for number, name in enumerate(names)
    ]
    app.make_store()
    app.ledger.discover(slices)
    return [app.ledger.item(each.item_id) for each in slices]


def land(app: App, entity: str, names: Iterable[str]) -> None:
    """Put files into bronze, where a slice must be that is to be processed."""
    bronze = Path(app.project.entity(entity).places(app.project.lake).bronze)
    bronze.mkdir(parents=True, exist_ok=True)
    for name in names:
        (bronze / name).write_text("id\n1\n")


def claim(app: App, item: Item) -> Claim:
    """Lock a slice."""
    application = next(iter(item.verdicts()))
    return app.ledger.acquire(
        item.item_id,
        application,
        app.holder,
        duration=timedelta(seconds=60),
        token_counter=f"table {application}",
    )


def process(app: App, item: Item, metrics: Mapping[str, Any] | None = None, **more: Any) -> Item:
    """Record that a slice was processed, into a table without rows if there is none."""
    application = next(iter(item.verdicts()))
    for entity in app.project.entities.values():
        location = entity.places(app.project.lake).silver.location
        if application_of(app.project.name, entity) == application and location is not None:
            make_empty_silver(Path(location), entity.strategy)
    content = {"metrics": {**METRICS, **(metrics or {})}, "delta_version": 1, **more}
    return app.ledger.processed(claim(app, item), content)


def fail(app: App, item: Item, message: str = "column 'amount' is text") -> Item:
    """Record that a slice failed."""
    error = SliceError(message, remedy="Correct the file.")
    return app.ledger.failed(claim(app, item), failure(error))
