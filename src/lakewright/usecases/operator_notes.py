"""What an operator must know of items that were skipped, unskipped or requeued, with the commands to type."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from lakewright.errors import LakewrightError
from lakewright.errors.phrase import Phrase
from lakewright.manifest.item import Item, Verdict
from lakewright.slices.application import application_of
from lakewright.slices.chain import is_in_table
from lakewright.slices.discover import called_name, natural_key, slice_name
from lakewright.slices.other_runs import declared_strategy, processing_jobs
from lakewright.slices.time_check import may_be_late
from lakewright.spec.models.entity import Entity
from lakewright.strategies.delete_inference import late_slice_warning
from lakewright.strategies.outdated import rebuild_command
from lakewright.usecases.items import inventory_of
from lakewright.usecases.placed import chain_of
from lakewright.usecases.slice_times.declared_times import late_items, late_slices_of
from lakewright.usecases.slice_times.refused_times import requeued_time_note

if TYPE_CHECKING:
    from lakewright.app import App

__all__ = ["gone_notes", "requeue_notes", "skip_notes", "unskip_notes"]


def skip_notes(app: App, item: Item) -> Iterator[str]:
    """Yield that the table keeps the rows of an item that was skipped after its entity had processed it."""
    entity, _ = inventory_of(app).later_items(item)
    if entity is None:
        return
    application = application_of(app.project.name, entity)
    if not item.is_skipped_for(application):
        return
    if item.is_processed_by(application) or _is_held(app, entity, item):
        yield (
            Phrase(
                f"{called_name(entity.called, item)}: the slice was processed already, and its rows "
                "stay in the table until ",
                rebuild_command(entity),
                " builds it again without them",
            )
        )


def _is_held(app: App, entity: Entity, item: Item) -> bool:
    """Return whether a table holds a slice of an earlier revision, as far as its log can be read."""
    chain = chain_of(app, entity)
    if item.revision == 1 or chain.application.key not in item.tokens:
        return False
    try:
        return is_in_table(chain, item)
    except LakewrightError:  # `status` tells it
        return False


def unskip_notes(app: App, item: Item) -> Iterator[str]:
    """Yield what the next run refuses of an item that is ready again, or what it does to later records."""
    entity, later = inventory_of(app).later_items(item)
    if entity is None or item.verdict(application_of(app.project.name, entity)) is not Verdict.READY:
        return
    called = called_name(entity.called, item)
    is_refused = bool(late_items(app, entity, [item]))
    if is_refused:
        found = late_slices_of(app, entity, (slice_name(item),))
        yield Phrase(f"{called}: the slice is {found.words}, so the next run refuses it: ", found.remedy)
        if found.is_requeue_refused:
            return
    is_allowed = later and may_be_late(entity, item)
    after = "once it is requeued, " if is_refused else ""
    entities = {item.item_id: entity}
    yield from _time_notes(app, entities, after)
    yield from _late_notes(app, entities if is_allowed else {})


def requeue_notes(app: App, requeued: Mapping[str, Entity], overtaken: Mapping[str, Entity]) -> Iterator[str]:
    """Yield what the next run will refuse of requeued items, and what it does to records of later slices.

    Args:
        app: The project.
        requeued: The items' ids, with their entities.
        overtaken: Those of them that are applied after later slices.
    """
    yield from _time_notes(app, requeued, "")
    yield from _late_notes(app, overtaken)
    yield from _order_notes(app, overtaken)


def gone_notes(app: App, gone: Mapping[str, Entity]) -> Iterator[str]:
    """Yield that later slices, whose entities are given, are not processed again, as they are gone."""
    items = app.store.read(list(gone))
    for item_id, entity in gone.items():
        yield (
            f"{called_name(entity.called, items[item_id])}: the slice is not in bronze, or not complete "
            "there, so it is not processed again; records of it may get the rows of earlier slices"
        )


def _ordered(app: App, entities: Mapping[str, Entity]) -> Iterator[tuple[Entity, tuple[str, ...]]]:
    """Yield the entities of items with the names of their slices, in order."""
    items = app.store.read(list(entities))
    names: dict[str, list[str]] = {}
    for item_id, entity in entities.items():
        names.setdefault(entity.called, []).append(slice_name(items[item_id]))
    for entity in {each.called: each for each in entities.values()}.values():
        yield entity, tuple(sorted(names[entity.called], key=natural_key))


def _time_notes(app: App, entities: Mapping[str, Entity], after: str) -> Iterator[str]:
    """Yield what the next run will refuse of items; `after` begins the sentence."""
    for entity, ordered in _ordered(app, entities):
        note = requeued_time_note(app, entity, ordered)
        if note is not None:
            yield Phrase(f"{called_name(entity.called, ordered[0])}: {after}", note)


def _late_notes(app: App, entities: Mapping[str, Entity]) -> Iterator[str]:
    """Yield what requeued items, whose entities are given, do to records of later ones."""
    for item_id, entity in entities.items():
        runs = processing_jobs(app.project, entity.called)
        strategies = [declared_strategy(declared, entity) for _, declared in runs] or [entity.strategy]
        warnings = (late_slice_warning(entity, each) for each in strategies)
        if (warning := next(filter(None, warnings), None)) is not None:
            yield f"{called_name(entity.called, app.ledger.item(item_id))}: {warning}"


def _order_notes(app: App, entities: Mapping[str, Entity]) -> Iterator[str]:
    """Yield that requeued items, whose entities are given, are applied over newer rows, and the other way."""
    for entity, ordered in _ordered(app, entities):
        if (warning := late_slices_of(app, entity, ordered).warning) is not None:
            yield Phrase(f"{called_name(entity.called, ordered[0])}: ", warning)
