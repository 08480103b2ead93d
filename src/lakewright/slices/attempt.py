"""One slice under its lock: found in the table already, or read, applied and recorded.

Source: `processing-manifest.md`, "State". What lies between lock and release is safe to repeat: the table
tells whether an attempt's commit landed.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any

from lakewright.errors import (
    CommitConflict,
    LakewrightError,
    LateSliceError,
    LeaseLost,
    NotInstalled,
    OperatorError,
    SliceError,
    SparkUnavailable,
    StoreUnavailable,
)
from lakewright.lake.commit import LandedCommit, find_commit, strict_session
from lakewright.lake.failpoint import reach_failpoint
from lakewright.manifest.lock import command
from lakewright.manifest.payload import failure
from lakewright.slices.check import unchanged_slice
from lakewright.slices.pending import slice_name
from lakewright.slices.read import read_slice
from lakewright.slices.recover_from_log import numbers_of, told_by
from lakewright.slices.result import SliceResult
from lakewright.slices.window import lower_ends
from lakewright.spark.jvm import full_text, is_jvm_failure, jvm_failure
from lakewright.strategies.apply import Applied, Order, apply
from lakewright.strategies.failures import translated
from lakewright.strategies.summary import Summary

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lakewright.manifest.claim import Claim
    from lakewright.slices.bench import Bench
    from lakewright.slices.discover import Slice
    from lakewright.spec.models.entity import Entity, Strategy
    from lakewright.stores.heartbeat import Heartbeat

__all__ = ["Attempts"]

ATTEMPTS = 3
"""Times that a slice is compared anew because the table changed meanwhile."""

TICK = timedelta(microseconds=1)


class Attempts:
    """Attempts at slices of one entity, one after the other.

    Args:
        bench: What to work with.
        entity: The entity.
        strategy: By which they are processed.
        given: The processing time, where the caller gave one.
        late: Ids of items that are older than one already processed.
    """

    def __init__(
        self,
        bench: Bench,
        entity: Entity,
        strategy: Strategy,
        *,
        given: datetime | None,
        late: frozenset[str],
    ) -> None:
        self.bench = bench
        self.entity = entity
        self.strategy = strategy
        self.given = given
        self.late = late
        self.places = entity.places(bench.lake.settings)
        self.app_id = str(bench.application)
        self.last_time: datetime | None = None

    @cached_property
    def session(self) -> SparkSession:
        """A session of this entity's own, started when a slice is read."""
        return strict_session(self.bench.lake)

    def process(self, claim: Claim, heartbeat: Heartbeat) -> SliceResult:
        """Return what came of a claimed slice; the claim is ended, whatever happens.

        Raises:
            LakewrightError: It could not be processed; the manifest has it as failed or, where nothing was
                wrong with it, as ready again.
            KeyboardInterrupt: The run was made to end; the manifest has it as ready again.
        """
        heartbeat.keep(claim.lease)
        name = slice_name(claim.item)
        try:
            reach_failpoint("after_lock")
            return self._attempt(claim, lambda: heartbeat.check(claim.lease))
        except (LeaseLost, StoreUnavailable):
            raise
        except (NotInstalled, OperatorError, SparkUnavailable) as error:
            self._let_go(claim, heartbeat, f"not done: {error.message}")
            raise
        except Exception as error:
            if self.bench.is_cut_off():
                self._let_go(claim, heartbeat, "the run was interrupted")
                raise KeyboardInterrupt from error
            if is_jvm_failure(error):
                self._let_go(claim, heartbeat, "Spark's JVM failed")
                raise jvm_failure(name, error) from error
            heartbeat.drop(claim.lease)
            ours = translated(error, self.entity, name, table=self.places.silver.location or "")
            self.record_failure(claim, ours, error)
            if ours is error:
                raise  # raised from itself, it would forget what it came from
            raise ours from error
        except BaseException:
            self._let_go(claim, heartbeat, "the run was interrupted")
            raise
        finally:
            heartbeat.drop(claim.lease)

    def _let_go(self, claim: Claim, heartbeat: Heartbeat, reason: str) -> None:
        """Make the item ready again, if it is still this claim that holds it."""
        heartbeat.drop(claim.lease)
        held = self.bench.ledger.item(claim.item_id).processing
        if held is not None and held.record_id == claim.record_id:
            self.bench.ledger.release(claim.item_id, reason, is_forced=True)

    def record_failure(self, claim: Claim, ours: LakewrightError, error: Exception) -> None:
        """End a claim with FAILED: `ours` says why, `error` is where it came from."""
        trace = "".join(traceback.format_exception(error, limit=20)) + "\n" + full_text(error)
        holds_back = not isinstance(ours, LateSliceError)
        self.bench.ledger.failed(
            claim, failure(ours, stack_trace=trace, holds_back=holds_back), holds_back=holds_back
        )

    def _attempt(self, claim: Claim, check: Callable[[], None]) -> SliceResult:
        """Find the slice's commit, or make it; whoever was in between, the table is asked again."""
        lake, silver = self.bench.lake, self.places.silver
        for attempt in range(1, ATTEMPTS + 1):
            fact = find_commit(lake, silver, self.app_id, claim.token)
            if fact is not None:
                return self._adopt(claim, fact)
            try:
                return self._apply(claim, check)
            except (CommitConflict, LeaseLost) as error:
                check()
                if attempt == ATTEMPTS:
                    raise
                self.bench.warn(f"{slice_name(claim.item)}: {error.message}; compared anew")
        raise AssertionError("the last attempt returns or raises")

    def _adopt(self, claim: Claim, fact: LandedCommit) -> SliceResult:
        """Tell the manifest of a commit that landed before it could be told."""
        summary, content = told_by(fact, self.strategy)
        self._record(claim, summary, content)
        return SliceResult(slice_name(claim.item), claim.item_id, summary, is_adopted=True)

    def _apply(self, claim: Claim, check: Callable[[], None]) -> SliceResult:
        started = time.monotonic()
        self._refuse_late(claim)
        slice_ = self._unchanged_slice(claim)
        at = self._next_time()
        name = slice_name(claim.item)
        try:
            frame = read_slice(self.session, slice_, self.entity)
            reach_failpoint("after_read")
            applied = apply(
                self.bench.lake, self.session, self.entity, frame, self._order(claim, slice_, at, check)
            )
        except LakewrightError:
            raise
        except Exception as error:
            raise translated(error, self.entity, name, table=self.places.silver.location or "") from error
        summary = replace(applied.summary, seconds=round(time.monotonic() - started, 3))
        self._record(claim, summary, self._content(slice_, at, applied))
        if applied.adopted is not None:
            self.bench.warn(f"{self.entity.name}: the table was adopted, {applied.adopted['rows']} rows")
        warnings = () if applied.drift is None else applied.drift.messages
        for warning in warnings:
            self.bench.warn(f"{name}: {warning}")
        return SliceResult(name, claim.item_id, summary, warnings=warnings)

    def _record(self, claim: Claim, summary: Summary, content: Mapping[str, Any]) -> None:
        reach_failpoint("before_processed")
        self.bench.ledger.processed(claim, {**content, **numbers_of(summary)})

    def _refuse_late(self, claim: Claim) -> None:
        noted = claim.item.new is not None and claim.item.new.note.get("allow_late") is True
        if (
            claim.item_id not in self.late
            or self.bench.options.permissions.allow_late
            or noted
            or self.entity.settings.late_slices == "apply"
        ):
            return
        raise LateSliceError(
            f"the slice {slice_name(claim.item)} is older than one that is already processed",
            remedy=f"Apply it with `{command('requeue', claim.item_id)} --late`, or skip the item.",
        )

    def _unchanged_slice(self, claim: Claim) -> Slice:
        return unchanged_slice(self.bench.lake, self.places.bronze, claim.item)

    def _next_time(self) -> datetime:
        """The processing time of the next slice: later than that of the last one of this run."""
        at = self.given or self.bench.clock().astimezone(UTC)
        if self.last_time is not None and self.given is None:
            at = max(at, self.last_time + TICK)
        self.last_time = at
        return at

    def _order(self, claim: Claim, slice_: Slice, at: datetime, check: Callable[[], None]) -> Order:
        def check_all() -> None:
            check()
            if self._unchanged_slice(claim).fingerprint != slice_.fingerprint:
                raise SliceError(f"the slice {slice_.name} changed while it was read")

        return Order(
            slice_name=slice_.name,
            slice_size=slice_.size,
            strategy=self.strategy,
            at=at,
            app_id=self.app_id,
            number=claim.token,
            check=check_all,
            holder=str(self.bench.holder),
            content=self._commit_content(claim, slice_, at),
            lower_ends=lower_ends(self.bench, self.entity),
            permissions=self.bench.options.permissions,
        )

    def _commit_content(self, claim: Claim, slice_: Slice, at: datetime) -> dict[str, Any]:
        return {
            "item": claim.item_id,
            "revision": claim.item.revision,
            "run": claim.run_id,
            "record": claim.record_id,
            "strategy": self.strategy.value,
            "processingTime": at.isoformat(),
            "fingerprint": slice_.fingerprint,
        }

    def _content(self, slice_: Slice, at: datetime, applied: Applied) -> dict[str, Any]:
        content: dict[str, Any] = {
            "slice": slice_.name,
            "strategy": self.strategy.value,
            "processing_time": at.isoformat(),
            "fingerprint": slice_.fingerprint,
            "watermarks": {column: mark.as_json() for column, mark in applied.watermarks.items()},
        }
        if applied.adopted is not None:
            content["adopted_table"] = dict(applied.adopted)
        return content if applied.drift is None else {**content, "drift": applied.drift.as_json()}
