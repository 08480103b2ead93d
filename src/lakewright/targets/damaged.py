"""Slices that can be seen to be damaged before any of them is processed.

Source: rules of entities, "Errors": VALIDATE reads each pending slice's footer; what it finds there is
recorded for that slice and stops nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable

from lakewright.errors import LakewrightError, OperatorError, SequenceConflict, SliceError
from lakewright.lake.files import join, local_path
from lakewright.lake.parquet import count_rows
from lakewright.lake.table import last_number
from lakewright.manifest.payload import failure
from lakewright.slices.discover import Slice, item_id, refuse_unreadable
from lakewright.slices.pending import Pending
from lakewright.slices.process import Bench
from lakewright.spec.entity import Entity

__all__ = ["record_damaged"]


def record_damaged(
    bench: Bench, entity: Entity, pending: Pending, slices: Iterable[Slice]
) -> tuple[LakewrightError, ...]:
    """Record as failed those ready slices that are empty files or no whole Parquet, and return why."""
    by_id = {item_id(slice_.path): slice_ for slice_ in slices}
    found = []
    for item in pending.ready:
        error = _damage(by_id.get(item.item_id), entity)
        if error is not None and _record(bench, entity, item.item_id, error):
            found.append(error)
    return tuple(found)


def _damage(slice_: Slice | None, entity: Entity) -> SliceError | None:
    if slice_ is None:
        return None  # gone: processing it says so
    try:
        refuse_unreadable(slice_)
    except SliceError as error:
        return error
    if entity.bronze_format != "parquet":
        return None
    for file in slice_.files:
        path = local_path(join(slice_.path, file.name) if slice_.is_folder else slice_.path)
        try:
            if path is not None:
                count_rows(path)
        except (ValueError, OSError) as error:
            return SliceError(
                f"the slice {slice_.name} can't be read: {error}",
                remedy="Deliver it again, then resolve the item; or skip it.",
                details={"path": slice_.path},
            )
    return None


def _record(bench: Bench, entity: Entity, item: str, error: SliceError) -> bool:
    """Claim the item and give it back as failed; nothing happens where another run has it."""
    silver = entity.places(bench.lake.settings).silver
    try:
        claim = bench.ledger.acquire(
            item,
            bench.application,
            bench.holder,
            duration=bench.lease,
            token_counter=f"table {silver}",
            token_floor=last_number(bench.lake, silver, str(bench.application)) or 0,
            takeover=bench.takeover,
        )
    except (OperatorError, SequenceConflict):
        return False
    bench.ledger.failed(claim, failure(error))
    return True
