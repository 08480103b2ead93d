"""One slice through one strategy: prepared, looked over, compared and committed.

Source: `processing-strategies.md`, "Common Processing Pipeline".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from lakewright.lake.commit import Token
from lakewright.lake.failpoint import reach_failpoint
from lakewright.lake.observation import observe_table
from lakewright.lake.table_state import TableState
from lakewright.manifest.watermark import Watermark
from lakewright.plan.permissions import Permissions
from lakewright.spec.models.entity import Strategy
from lakewright.strategies.adopting.columns import is_adoptable
from lakewright.strategies.adopting.commit import adopt
from lakewright.strategies.drift import Drift
from lakewright.strategies.facts import take_facts
from lakewright.strategies.full import apply_full
from lakewright.strategies.historic import apply_historic
from lakewright.strategies.merge import apply_merge
from lakewright.strategies.pruning import ranged_columns
from lakewright.strategies.schema_fit import Fit, fit_slice
from lakewright.strategies.work import Work
from lakewright.transform.hash import HASH_VERSION

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lakewright.lake.lake import Lake
    from lakewright.spec.models.entity import Entity
    from lakewright.strategies.summary import Summary

__all__ = ["Applied", "Order", "apply", "take_up"]

_STRATEGIES: Mapping[Strategy, Callable[[Work], Summary]] = {
    Strategy.FULL: apply_full,
    Strategy.MERGE: apply_merge,
    Strategy.HISTORIC: apply_historic,
}


SMALL_SLICE = 4 << 20
"""Bytes of a slice that one task works through as fast as several."""

SMALL_TABLE = 200_000
"""Rows of a table of which the same holds."""

_SMALL = {"spark.sql.adaptive.enabled": "false", "spark.sql.shuffle.partitions": "1"}

_WIDE = {"spark.sql.optimizer.excludedRules": "org.apache.spark.sql.catalyst.optimizer.CollapseProject"}
"""That rule looks at each column beside each other one, over and over."""

WIDE = 200
"""Columns from which on this costs more than it wins."""


@dataclass(frozen=True, slots=True)
class Order:
    """What is to be done with one slice.

    Attributes:
        slice_name: Of the slice, for its rows.
        slice_size: In bytes.
        at: The processing time.
        app_id: Under which commits to the table are numbered.
        number: Of this slice's commit.
        content: What the commit carries beside its metrics.
        lower_ends: Watermark column to the lower end of its window.
        check: Raises if the slice's lock isn't held any more.
        holder: Who works.
    """

    slice_name: str
    slice_size: int
    strategy: Strategy
    at: datetime
    app_id: str
    number: int
    check: Callable[[], None]
    holder: str
    content: Mapping[str, Any] = field(default_factory=dict)
    lower_ends: Mapping[str, object] = field(default_factory=dict)
    permissions: Permissions = field(default_factory=Permissions)


@dataclass(frozen=True, slots=True)
class Applied:
    """A slice that is in its table.

    Attributes:
        watermarks: Greatest value of each watermark's column in the slice.
        drift: What was different about its columns.
        adopted: Numbers of the table's rows, where it was adopted first.
    """

    summary: Summary
    watermarks: Mapping[str, Watermark]
    drift: Drift | None
    adopted: Mapping[str, int] | None = None


def apply(lake: Lake, session: SparkSession, entity: Entity, frame: DataFrame, order: Order) -> Applied:
    """Return what came of a slice: exactly one commit to its table, or none where nothing changes.

    Args:
        lake: The lake.
        session: A strict session, in which `frame` was read.
        entity: The entity.
        frame: The slice's rows, lazily.
        order: What is to be done.

    Raises:
        TargetError: The slice can't be processed as it is; nothing was written.
        RetryableError: Something was in the way that passes.
    """
    adopted = _adopted(lake, session, entity, frame, order)
    work = take_up(lake, session, entity, frame, order)
    reach_failpoint("after_facts")
    summary = _STRATEGIES[order.strategy](work)
    drift = work.alignment.drift if work.alignment is not None and work.alignment.drift else None
    return Applied(summary, work.facts.watermarks, drift, adopted)


def _adopted(
    lake: Lake, session: SparkSession, entity: Entity, frame: DataFrame, order: Order
) -> Mapping[str, int] | None:
    """Adopt the table that is there, if it is to be; return the numbers of its rows."""
    if not is_adoptable(entity, observe_table(lake, entity.places(lake.settings).silver)):
        return None
    fit = _fitted(lake, session, entity, frame, order)
    token = Token(order.app_id, 0, order.content)
    return adopt(lake, session, entity, fit.prepared, fit.state, at=order.at, token=token, check=order.check)


def take_up(lake: Lake, session: SparkSession, entity: Entity, frame: DataFrame, order: Order) -> Work:
    """Return a slice beside its table, its facts taken by one query; nothing is written.

    Raises:
        TargetError: The slice can't be processed as it is.
    """
    fit = _fitted(lake, session, entity, frame, order)
    is_small = _is_small(order.slice_size, fit.state)
    _tune(session, is_small=is_small, is_wide=len(fit.prepared.frame.columns) > WIDE)
    ranged = ranged_columns(entity, fit.prepared)
    facts = take_facts(
        fit.prepared, are_null_keys_allowed=entity.settings.null_keys == "allow", ranged=ranged
    )
    watermarks = {column: mark.as_json() for column, mark in facts.watermarks.items()}
    return Work(
        lake=lake,
        session=session,
        entity=entity,
        address=fit.address,
        state=fit.state,
        prepared=fit.prepared,
        facts=facts,
        alignment=fit.alignment,
        at=order.at,
        app_id=order.app_id,
        number=order.number,
        check=order.check,
        holder=order.holder,
        content={**order.content, "hashVersion": HASH_VERSION, "watermarks": watermarks},
        lower_ends=order.lower_ends,
        permissions=order.permissions,
        is_small=is_small,
    )


def _fitted(lake: Lake, session: SparkSession, entity: Entity, frame: DataFrame, order: Order) -> Fit:
    return fit_slice(
        lake,
        session,
        entity,
        frame,
        slice_name=order.slice_name,
        strategy=order.strategy,
        at=order.at,
        allow_data_loss=order.permissions.allow_data_loss,
    )


def _is_small(size: int, state: TableState) -> bool:
    return size <= SMALL_SLICE and state.rows is not None and state.rows <= SMALL_TABLE


def _tune(session: SparkSession, *, is_small: bool, is_wide: bool) -> None:
    """Let a small slice go through queries of one partition each, not planned anew as they run.

    Those of a wide one are planned without what takes too long.
    """
    for is_chosen, values in ((is_small, _SMALL), (is_wide, _WIDE)):
        for key, value in values.items():
            if is_chosen:
                session.conf.set(key, value)
            else:
                session.conf.unset(key)
