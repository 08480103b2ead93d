"""What the next slice of an entity would do that a plan can't tell by names: the deletes that it implies.

Source: `processing-strategies.md`, "Delete Inference".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakewright.errors import LakewrightError
from lakewright.lake.commit import strict_session
from lakewright.lake.observation import observe_table
from lakewright.slices.check import unchanged_slice
from lakewright.slices.pending import slice_name
from lakewright.slices.read import read_slice
from lakewright.slices.window import lower_ends
from lakewright.spec.models.entity import Strategy
from lakewright.strategies.adopting.columns import is_adoptable
from lakewright.strategies.apply import Order, take_up
from lakewright.strategies.failures import translated
from lakewright.strategies.preview import preview_deletes

if TYPE_CHECKING:
    from lakewright.manifest.item import Item
    from lakewright.slices.bench import Bench
    from lakewright.slices.pending import Pending
    from lakewright.spec.models.entity import Entity

__all__ = ["preview_next"]


def preview_next(bench: Bench, entity: Entity, pending: Pending) -> str | None:
    """Return a sentence on the deletes that an entity's next slice would infer, or None where none can be.

    Those after it depend on what it leaves. Nothing is written; a slice that can't be processed says so.
    """
    strategy = bench.options.strategy or entity.strategy
    if not entity.settings.delete_missing or strategy is Strategy.FULL or not pending.ready:
        return None
    if is_adoptable(entity, observe_table(bench.lake, entity.places(bench.lake.settings).silver)):
        return "deletes can be counted once the table is adopted"
    item = pending.ready[0]
    try:
        return _counted(bench, entity, item, strategy)
    except LakewrightError as error:
        return f"{slice_name(item)} would fail: {error.message}"


def _counted(bench: Bench, entity: Entity, item: Item, strategy: Strategy) -> str | None:
    slice_ = unchanged_slice(bench.lake, entity.places(bench.lake.settings).bronze, item)
    session = strict_session(bench.lake)
    order = Order(
        slice_name=slice_.name,
        slice_size=slice_.size,
        strategy=strategy,
        at=bench.clock(),
        app_id=str(bench.application),
        number=0,
        check=lambda: None,
        holder=str(bench.holder),
        lower_ends=lower_ends(bench, entity),
    )
    try:
        work = take_up(bench.lake, session, entity, read_slice(session, slice_, entity), order)
        found = preview_deletes(work, strategy)
    except Exception as error:
        raise translated(error, entity, slice_.name) from error
    return None if found is None else found.text(slice_.name, strategy)
