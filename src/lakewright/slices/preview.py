"""Preview of the deletes that an entity's next slice would infer; a plan cannot know them from names alone.

Source: `processing-strategies.md`, "Delete Inference".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakewright.errors import LakewrightError
from lakewright.lake.commit import strict_session
from lakewright.lake.observation import observe_table
from lakewright.slices.discover import find_unchanged_slice, slice_name
from lakewright.slices.past import lacks_past
from lakewright.slices.read import read_slice, table_types
from lakewright.spec.models.entity import Strategy
from lakewright.spec.words import counted
from lakewright.strategies.adoption.columns import is_adoptable
from lakewright.strategies.bad_rows import check_bad_rows
from lakewright.strategies.delete_inference import empty_slice_warning, lower_bounds, preview_deletes
from lakewright.strategies.failures import translate_error
from lakewright.strategies.prepare import prepare_load
from lakewright.strategies.slice_load import LoadRequest

if TYPE_CHECKING:
    from lakewright.manifest.item import Item
    from lakewright.slices.context import ProcessingContext
    from lakewright.slices.pending import Pending
    from lakewright.spec.models.entity import Entity

__all__ = ["preview_next_slice"]


def preview_next_slice(context: ProcessingContext, entity: Entity, pending: Pending) -> str | None:
    """Return a sentence on the deletes that an entity's next slice would infer; None if it infers none.

    Later slices are left out, because their deletes depend on the table after this one. Nothing is written.
    If the slice cannot be processed, the sentence says why.
    """
    strategy = context.strategy_for(entity)
    if not entity.settings.delete_missing or strategy is Strategy.FULL or not pending.ready:
        return None
    state = observe_table(context.lake, entity.places(context.lake.settings).silver)
    if is_adoptable(entity, state):
        return "deletes can be counted once the table is adopted"
    if lacks_past(context, entity, state):
        return "deletes can be counted once the versions of history_from are loaded; --rehearse counts them"
    item = pending.ready[0]
    try:
        return _preview(context, entity, item, strategy, is_late=item.item_id in pending.late)
    except LakewrightError as error:
        return f"{slice_name(item)} would fail: {error.message}"


def _preview(
    context: ProcessingContext, entity: Entity, item: Item, strategy: Strategy, *, is_late: bool
) -> str | None:
    slice_ = find_unchanged_slice(context.lake, entity.places(context.lake.settings).bronze, item)
    session = strict_session(context.lake)
    last_values = context.ledger.watermarks.last(context.application)
    request = LoadRequest(
        slice_name=slice_.name,
        slice_size=slice_.size,
        strategy=strategy,
        at=context.clock(),
        lower_bounds=lower_bounds(entity, last_values, context.clock),
        is_late=is_late,
    )
    if is_late and entity.settings.sequence_by is not None:
        return None  # the plan says so of every late slice
    try:
        frame = read_slice(context.lake, session, slice_, entity, known=table_types(context.lake, entity))
        load = prepare_load(context.lake, session, entity, frame, request)
        check_bad_rows(load.bad_rows, entity, load.state, records=load.statistics.records)
        found = preview_deletes(load)
    except Exception as error:
        raise translate_error(error, entity, slice_.name) from error
    if load.bad_rows:
        rows = counted(len(load.bad_rows), "bad row")
        return f"{slice_.name} has {rows} that would be put aside, so that it infers no deletes"
    if found is not None:
        return found.text(slice_.name, strategy)
    records = load.statistics.records
    empty = empty_slice_warning(entity, strategy, records=records, is_first=load.is_first)
    return None if empty is None else f"{slice_.name}: {empty}"
