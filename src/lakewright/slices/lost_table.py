"""A silver table that is gone, although the manifest counts slices as processed into it.

The next slice alone would make a new table without the rows of all slices before it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakewright.errors import TargetError
from lakewright.lake.observation import observe_table
from lakewright.slices.discover import slice_name
from lakewright.slices.processed import first_processed
from lakewright.strategies.outdated import rebuild_command

if TYPE_CHECKING:
    from lakewright.lake.table_state import TableState
    from lakewright.manifest.item import Item
    from lakewright.slices.context import ProcessingContext
    from lakewright.spec.models.entity import Entity

__all__ = ["check_table_not_lost", "lost_table_error"]


def lost_table_error(entity: Entity, processed: Item | None, place: object) -> TargetError | None:
    """Return the error of a table that does not exist although a slice is processed into it, or None.

    Args:
        entity: The entity, whose table does not exist.
        processed: A slice that counts as processed into it; None if there is none.
        place: The address of the table, as text for users.
    """
    if processed is None:
        return None
    return TargetError(
        f"entity {entity.called!r}: the manifest counts slices such as {slice_name(processed)} as processed "
        f"into {place}, but no table exists there",
        remedy="Bring the table back, or correct the place of silver if it was moved. "
        f"`{rebuild_command(entity)} --yes` makes it again from its slices.",
    )


def check_table_not_lost(context: ProcessingContext, entity: Entity) -> TableState:
    """Return the state of the silver table.

    Raises:
        TargetError: Slices count as processed, but the table does not exist.
    """
    silver = entity.places(context.lake.settings).silver
    state = observe_table(context.lake, silver)
    if state.exists:
        return state
    processed = first_processed(context.ledger.store, context.application)
    error = lost_table_error(entity, processed, silver)
    # Another run may have made the table and recorded its slice since the first look.
    if error is not None:
        state = observe_table(context.lake, silver)
        if not state.exists:
            raise error
    return state
