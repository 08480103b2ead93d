"""Adopting an entity's table before any slice is processed, as CREATE does.

Source: `lifecycles-and-phases.md`, "Phases" (CREATE migrates what is there).
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC
from typing import TYPE_CHECKING

from lakewright.lake.commit import Token, strict_session
from lakewright.slices.check import unchanged_slice
from lakewright.slices.pending import slice_name
from lakewright.slices.read import read_slice
from lakewright.strategies.adopting.commit import adopt
from lakewright.strategies.failures import translated
from lakewright.strategies.schema_fit import fit_slice

if TYPE_CHECKING:
    from lakewright.manifest.item import Item
    from lakewright.slices.bench import Bench
    from lakewright.spec.models.entity import Entity

__all__ = ["adopt_before"]


def adopt_before(bench: Bench, entity: Entity, item: Item) -> Mapping[str, int]:
    """Return the numbers of the table's rows after the entity has adopted it.

    Args:
        bench: What to work with.
        entity: The entity.
        item: Of the slice that is processed next; it is only looked at.

    Raises:
        TargetError: The slice can't be read, or what the table's rows mean isn't clear; nothing was written.
    """
    name, session = slice_name(item), strict_session(bench.lake)
    slice_ = unchanged_slice(bench.lake, entity.places(bench.lake.settings).bronze, item)
    at = bench.clock().astimezone(UTC)
    app_id = str(bench.application)
    try:
        fit = fit_slice(
            bench.lake,
            session,
            entity,
            read_slice(session, slice_, entity),
            slice_name=name,
            strategy=entity.strategy,
            at=at,
            allow_data_loss=False,
        )
        token = Token(app_id, 0, {"run": bench.holder.run_id, "before": item.item_id})
        return adopt(
            bench.lake,
            session,
            entity,
            fit.prepared,
            fit.state,
            at=at,
            token=token,
            check=lambda: None,
        )
    except Exception as error:
        raise translated(error, entity, name) from error
