"""Slices of which can be seen that they can't be processed, before any of them is.

Source: rules of entities, "Errors": VALIDATE reads each pending slice's footer; what it finds there is
recorded for that slice and stops nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import takewhile
from typing import TYPE_CHECKING

from lakewright.errors import (
    LakewrightError,
    NotInstalled,
    OperatorError,
    RetryableError,
    SequenceConflict,
    SliceError,
    SparkUnavailable,
    SpecError,
)
from lakewright.lake.commit import strict_session
from lakewright.lake.observation import last_commit_number
from lakewright.lake.parquet_footer import schema_fingerprint
from lakewright.lake.paths import local_path
from lakewright.manifest.item import Verdict
from lakewright.manifest.payload import failure
from lakewright.slices.discover import item_id, refuse_unreadable
from lakewright.slices.read import read_slice
from lakewright.slices.recover_from_log import counter_of, has_landed
from lakewright.spark.jvm import is_jvm_failure, jvm_failure
from lakewright.strategies.failures import translated
from lakewright.strategies.schema_fit import Fit, fit_slice

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lakewright.manifest.item import Item
    from lakewright.slices.bench import Bench
    from lakewright.slices.discover import Slice
    from lakewright.slices.pending import Pending
    from lakewright.spec.models.entity import Entity

__all__ = ["fail_foreseeable"]

_WITHOUT_HEAD = "json"
"""Format whose columns are known only after all of it is read."""


def fail_foreseeable(
    bench: Bench, entity: Entity, pending: Pending, slices: Iterable[Slice]
) -> tuple[LakewrightError, ...]:
    """Record as failed those ready slices that can't be processed, and return why.

    These are files that can't be read, by their footers, and slices whose columns don't fit: keys missing or
    of another type, drift that the entity refuses, names and types that a table can't hold. Of slices that
    come after one of these, which then wait, only the footers are looked at. Slices with the same columns
    cost one look together, and none if one with these columns has just been processed.

    Raises:
        SpecError: An expression of the entity reaches for more than a row's columns: no slice's fault.
    """
    slices = tuple(slices)
    by_id = {item_id(slice_.path): slice_ for slice_ in slices}
    foresight = _Foresight(bench, entity)
    foresight.trust(_former(bench, pending, slices))
    found: list[LakewrightError] = []
    for item in _unprocessed(bench, entity, pending):
        slice_ = by_id.get(item.item_id)
        if slice_ is None:
            continue  # gone: processing it says so
        is_next = not found and item.item_id not in pending.late
        error = foresight.problem(slice_, is_next=is_next)
        if error is not None and _record(bench, entity, item.item_id, error):
            found.append(error)
    return tuple(found)


def _unprocessed(bench: Bench, entity: Entity, pending: Pending) -> Iterator[Item]:
    """The ready items but those whose commit has landed: they only wait to be told of."""
    silver = entity.places(bench.lake.settings).silver
    for item in pending.ready:
        if not has_landed(bench.lake, silver, item, bench.application):
            yield item


def _former(bench: Bench, pending: Pending, slices: Sequence[Slice]) -> Slice | None:
    """The slice before the first that is ready, if it has been processed as it is."""
    ready = {item.item_id for item in pending.ready}
    before = list(takewhile(lambda slice_: item_id(slice_.path) not in ready, slices))
    if not ready or not before:
        return None
    item = bench.ledger.item(item_id(before[-1].path))
    is_processed = item.verdict(bench.application) is Verdict.PROCESSED
    return before[-1] if is_processed and item.fingerprint == before[-1].fingerprint else None


class _Foresight:
    """What can be seen of one entity's slices, each after those before it."""

    def __init__(self, bench: Bench, entity: Entity) -> None:
        self.bench = bench
        self.entity = entity
        self.fitting: set[tuple[str, ...]] = set()
        self.first: Fit | None = None

    def trust(self, former: Slice | None) -> None:
        """Take it that slices with the columns of this one fit."""
        with suppress(SliceError):
            mark = self._mark(former) if former is not None else ()
            if mark:
                self.fitting.add(mark)

    def problem(self, slice_: Slice, *, is_next: bool) -> LakewrightError | None:
        try:
            refuse_unreadable(slice_)
            mark = self._mark(slice_)
        except SliceError as error:
            return error
        if (
            not is_next
            or self.entity.settings.bronze_format == _WITHOUT_HEAD
            or (mark and mark in self.fitting)
        ):
            return None
        session = strict_session(self.bench.lake)
        try:
            fit = self._fit(session, slice_)
        except (NotInstalled, SparkUnavailable, SpecError):
            raise
        except Exception as error:
            if self.bench.is_cut_off():
                raise KeyboardInterrupt from error
            if is_jvm_failure(error):
                raise jvm_failure(slice_.name, error) from error
            ours = translated(error, self.entity, slice_.name)
            if isinstance(ours, NotInstalled):
                raise ours from error
            return None if isinstance(ours, (OperatorError, RetryableError)) else ours
        if not fit.state.exists:
            self.first = fit
        if mark:
            self.fitting.add(mark)
        return None

    def _mark(self, slice_: Slice) -> tuple[str, ...]:
        """What slices of the same columns have in common, or nothing where that isn't known."""
        if self.entity.settings.bronze_format != "parquet":
            return ()
        marks = set()
        for file, place in zip(slice_.files, slice_.paths, strict=True):
            path = local_path(place)
            if path is None:
                return ()
            try:
                marks.add(schema_fingerprint(path))
            except (ValueError, OSError) as error:
                raise SliceError(
                    f"the slice {slice_.name} can't be read: {error}",
                    remedy="Deliver it again, then resolve the item; else resolve and skip it.",
                    details={"path": slice_.path},
                ) from error
            marks.update(part for part in file.name.split("/")[:-1])
        return tuple(sorted(marks))

    def _fit(self, session: SparkSession, slice_: Slice) -> Fit:
        return fit_slice(
            self.bench.lake,
            session,
            self.entity,
            read_slice(session, slice_, self.entity),
            slice_name=slice_.name,
            strategy=self.bench.options.strategy or self.entity.strategy,
            at=self.bench.clock(),
            allow_data_loss=self.bench.options.permissions.allow_data_loss,
            after=self.first,
        )


def _record(bench: Bench, entity: Entity, item: str, error: LakewrightError) -> bool:
    """Claim the item and give it back as failed; nothing happens where another run has it."""
    silver = entity.places(bench.lake.settings).silver
    try:
        claim = bench.ledger.acquire(
            item,
            bench.application,
            bench.holder,
            duration=bench.lease,
            token_counter=counter_of(silver),
            token_floor=last_commit_number(bench.lake, silver, str(bench.application)) or 0,
            takeover=bench.takeover,
        )
    except (OperatorError, SequenceConflict):
        return False
    bench.ledger.failed(claim, failure(error))
    return True
