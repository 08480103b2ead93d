"""Show the effect of one slice without processing it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from lakewright.app import App
from lakewright.errors import LakewrightError
from lakewright.lake.tracing import span
from lakewright.notebook import html_table
from lakewright.plan.permissions import NO_PERMISSIONS, Permissions
from lakewright.run.execute import Interruption
from lakewright.slices.context import ProcessingOptions, strategy_of
from lakewright.slices.discover import settle_of
from lakewright.slices.rehearse import Rehearsal, rehearsed
from lakewright.spec.models.entity import Strategy
from lakewright.strategies.delete_inference import DeletePreview
from lakewright.strategies.summary import Summary
from lakewright.target_contexts import target_contexts
from lakewright.targets.entity.work import processing_context
from lakewright.transform.system_columns import SystemColumns
from lakewright.usecases.past_table import PastTable
from lakewright.usecases.session_check import check_session
from lakewright.usecases.slice_changes import CHANGE_COLUMNS, RowChange, changes_of
from lakewright.usecases.slice_times import process_times

if TYPE_CHECKING:
    from lakewright.spec.models.entity import Entity

__all__ = ["RehearsedSlice", "rehearse_slice"]

_OF_CLONE = ("delta_version", "seconds", "is_first")
"""Metrics that say something about the clone only."""


@dataclass(frozen=True, slots=True, repr=False)
class RehearsedSlice:
    """What processing a slice would do to its entity's table; nothing was written.

    Attributes:
        entity: Name of the entity.
        slice: Name of the slice.
        item_id: Its item.
        state: What the manifest says of it: `ready`, `processed`, `failed`, `skipped` or `locked`.
        strategy: The strategy by which it would be applied.
        processing_time: The processing time that it was given.
        version: The version of the table that it was applied to; None if there is no table yet.
        summary: Its metrics; None if it can't be applied.
        counts: Number of records by change; None if records were not compared.
        rows: Some of the records that change, by key.
        deletes: The deletes that it would infer; None if it infers none.
        notes: What the reader must know of the slice and of those beside it.
        warnings: What a run would warn of.
        error: The error with which a run would end; None if it would succeed. With the error of the brake and
            those about order and time, the effect is that of a run that is allowed to go on.
    """

    entity: str
    slice: str
    item_id: str
    state: str
    strategy: str
    processing_time: datetime
    version: int | None
    summary: Summary | None
    counts: Mapping[str, int] | None
    rows: tuple[RowChange, ...]
    deletes: DeletePreview | None
    notes: tuple[str, ...]
    warnings: tuple[str, ...]
    error: LakewrightError | None

    @property
    def metrics(self) -> dict[str, Any] | None:
        """The counts of the slice; None if it can't be applied."""
        if self.summary is None:
            return None
        found = {name: value for name, value in asdict(self.summary).items() if name not in _OF_CLONE}
        return {**found, "strategy": self.strategy}

    @property
    def deletes_text(self) -> str | None:
        """The deletes that it would infer, and what the brake says, as a sentence."""
        return None if self.deletes is None else self.deletes.text(self.slice, Strategy(self.strategy))

    def __repr__(self) -> str:
        counts = " ".join(f"{name}={count}" for name, count in (self.counts or {}).items() if count)
        ended = counts if self.error is None else f"fails: {self.error.message}"
        return f"<RehearsedSlice {self.entity}/{self.slice} {self.strategy} {ended or 'changes nothing'}>"

    def _repr_html_(self) -> str:
        deletes = () if self.deletes_text is None else (self.deletes_text,)
        notes = (*self.notes, *self.warnings, *deletes, "Nothing was written.")
        return html_table(repr(self)[1:-1], CHANGE_COLUMNS, (row.shown for row in self.rows), notes)

    def as_json(self) -> dict[str, Any]:
        """Return the document that `process --rehearse` prints."""
        deletes = self.deletes
        return {
            "entity": self.entity,
            "slice": self.slice,
            "item_id": self.item_id,
            "state": self.state,
            "strategy": self.strategy,
            "processing_time": self.processing_time.isoformat(),
            "version": self.version,
            "metrics": self.metrics,
            "counts": None if self.counts is None else dict(self.counts),
            "rows": [row.as_json() for row in self.rows],
            "deletes": None
            if deletes is None
            else {
                "inferred": deletes.inferred,
                "expected": deletes.expected,
                "refused": deletes.is_refused,
                "text": self.deletes_text,
            },
            "notes": list(self.notes),
            "warnings": list(self.warnings),
            "error": None if self.error is None else self.error.as_fault().as_json(),
        }


def rehearse_slice(
    app: App,
    entity: str,
    slice: str,
    *,
    strategy: str | None = None,
    processing_time: str | None = None,
    permissions: Permissions = NO_PERMISSIONS,
    limit: int = 20,
    interruption: Interruption | None = None,
) -> RehearsedSlice:
    """Return what processing a slice would do: it is applied to a shallow clone, which is then removed.

    Nothing is written to silver, the manifest, watermarks or bronze. A slice that is processed, skipped or
    failed can be rehearsed too; it is applied to the table as it is now.

    Args:
        app: The project.
        entity: Name or id of the entity.
        slice: Name of the slice.
        strategy: `full`, `merge` or `historic`, used instead of the entity's own.
        processing_time: ISO 8601 text, or an expression over the slice. By default it is the one that all
            jobs declare for the entity's slices, or the current time.
        permissions: Actions to allow that are refused by default.
        limit: The largest number of records to return.
        interruption: Shows whether to stop.

    Raises:
        SpecError: There is no such entity.
        UsageError: There is no such slice, or the processing time is no time.
        LeaseHeld: Another process is rehearsing a slice of the entity.
    """
    found = app.project.entity(entity)
    check_session(app)
    times = process_times(app, found, processing_time)
    options = ProcessingOptions(
        strategy=strategy_of(strategy),
        processing_time=times.text,
        scope=times.scope,
        permissions=permissions,
        settle=settle_of(app.project.config),
    )
    context = processing_context(
        target_contexts(app, interruption=interruption)(app.workspace), found, options
    )
    with (
        span(f"rehearse {found.name}", entity=found.name, run=app.run_id),
        rehearsed(context, found, slice) as rehearsal,
    ):
        counts, rows, notes = _compared(app, found, rehearsal, limit)
        return RehearsedSlice(
            entity=found.name,
            slice=rehearsal.slice,
            item_id=rehearsal.item_id,
            state=rehearsal.verdict.value,
            strategy=context.strategy_for(found).value,
            processing_time=rehearsal.at,
            version=rehearsal.base,
            summary=rehearsal.summary,
            counts=counts,
            rows=rows,
            deletes=rehearsal.deletes,
            notes=(*filter(None, (times.note,)), *rehearsal.notes, *notes),
            warnings=rehearsal.warnings,
            error=rehearsal.error,
        )


def _compared(
    app: App, entity: Entity, rehearsal: Rehearsal, limit: int
) -> tuple[Mapping[str, int] | None, tuple[RowChange, ...], tuple[str, ...]]:
    """Return the number of records by change, some of them, and why they were not compared."""
    if rehearsal.summary is None:
        return None, (), ()
    if not entity.business_keys:
        return None, (), ("the entity has no business key, so records before and after can't be compared",)
    version = rehearsal.summary.delta_version
    if version is None:
        return {}, (), ()
    system = SystemColumns(app.project.lake.systemfield_prefix, entity.destination)
    table = PastTable(app, rehearsal.side, system, app.lake.new_session(), ())
    counts, rows = changes_of(table, version, limit=limit)
    return counts, rows, ()
