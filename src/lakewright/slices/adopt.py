"""Adoption of an entity's table before any slice is processed, as CREATE does it.

Source: `lifecycles-and-phases.md`, "Phases" (CREATE migrates an existing table).
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC
from typing import TYPE_CHECKING

from lakewright.lake.commit import Token, strict_session
from lakewright.lake.observation import observe_table
from lakewright.slices.discover import find_unchanged_slice, slice_name
from lakewright.slices.read import read_slice
from lakewright.strategies.adoption.columns import is_adoptable
from lakewright.strategies.adoption.commit import adopt
from lakewright.strategies.failures import translate_error
from lakewright.strategies.schema_fit import fit_slice
from lakewright.strategies.slice_load import LoadRequest, fit_request

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lakewright.lake.lake import Lake
    from lakewright.manifest.item import Item
    from lakewright.slices.context import ProcessingContext
    from lakewright.spec.models.entity import Entity

__all__ = ["adopt_first", "adopt_table"]


def adopt_table(context: ProcessingContext, entity: Entity, item: Item) -> Mapping[str, int]:
    """Adopt an entity's table; return the counts of its rows.

    Args:
        context: The context of the processing.
        entity: The entity.
        item: The item of the next slice, whose columns say how rows are hashed; it is only read.

    Raises:
        TargetError: The slice cannot be read, or the meaning of the table's rows is not clear; nothing was
            written.
    """
    name, session = slice_name(item), strict_session(context.lake)
    slice_ = find_unchanged_slice(context.lake, entity.places(context.lake.settings).bronze, item)
    at = context.clock().astimezone(UTC)
    token = Token(str(context.application), 0, {"run": context.holder.run_id, "before": item.item_id})
    try:
        fit = fit_slice(
            context.lake,
            session,
            entity,
            read_slice(context.lake, session, slice_, entity),
            slice_name=name,
            strategy=entity.strategy,
            at=at,
            allow_data_loss=False,
        )
        return adopt(
            context.lake, session, entity, fit.prepared, fit.state, at=at, token=token, check=lambda: None
        )
    except Exception as error:
        raise translate_error(error, entity, name) from error


def adopt_first(
    lake: Lake, session: SparkSession, entity: Entity, frame: DataFrame, request: LoadRequest
) -> Mapping[str, int] | None:
    """Adopt the existing table before a slice is applied to it, if the entity asks for it.

    Args:
        lake: The lake.
        session: The session of the load.
        entity: The entity.
        frame: The rows of the slice.
        request: How the slice is applied.

    Returns:
        The counts of the table's rows; None if there is nothing to adopt.
    """
    if not is_adoptable(entity, observe_table(lake, entity.places(lake.settings).silver)):
        return None
    fit = fit_request(lake, session, entity, frame, request)
    return adopt(
        lake,
        session,
        entity,
        fit.prepared,
        fit.state,
        at=request.at,
        token=request.token,
        check=request.check_lock,
    )
