"""Results of processing an entity's slices."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from lakewright.errors import (
    BackdatedError,
    CommitTooLate,
    DataLossError,
    Fault,
    JvmEnded,
    LakewrightError,
    LateSliceError,
    MigrationError,
    NotInstalled,
    OperatorError,
    RetryableError,
    RunFailed,
    SparkUnavailable,
    SpecError,
    StoreUnavailable,
    UsageError,
)
from lakewright.errors.fault import BRIEF
from lakewright.lake.observation import observe_table
from lakewright.manifest.lock import FAILED_ITEMS
from lakewright.notebook import html_table
from lakewright.plan.reason import Code
from lakewright.plan.status import Status
from lakewright.slices.deviations import NOTHING, Deviations
from lakewright.slices.discovery import slice_of_id
from lakewright.spec.models.entity import Strategy
from lakewright.spec.reason import Reason
from lakewright.strategies.summary import Summary

if TYPE_CHECKING:
    from lakewright.lake.lake import Lake
    from lakewright.spec.models.entity import Entity


def named_fault(error: LakewrightError) -> Fault:
    """Return the error of a slice that failed, with the slice's name if the message does not have it."""
    fault, items = error.as_fault(), error.details.get(FAILED_ITEMS, ())
    return fault.about(slice_of_id(items[0])) if items else fault


@dataclass(frozen=True, slots=True)
class SliceResult:
    """One slice that was processed.

    Attributes:
        name: Name of the slice.
        item_id: Id of its item.
        summary: Its metrics.
        is_adopted: Whether the commit of an earlier attempt was found and recorded.
        revision: Number of its item's revision; from 2 on, it may have been in the table before.
        warnings: Warnings about schema drift, and about rows that were put aside.
    """

    name: str
    item_id: str
    summary: Summary
    is_adopted: bool = False
    revision: int = 1
    warnings: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return the slice as commands print it: item, name, strategy and counts."""
        numbers = {name: value for name, value in asdict(self.summary).items() if name != "is_first"}
        return {
            "item": self.item_id,
            "slice": self.name,
            **numbers,
            "strategy": self.summary.strategy.value,
            **({"revision": self.revision} if self.revision > 1 else {}),
            "warnings": list(self.warnings),
        }


@dataclass(frozen=True, slots=True)
class SliceReport:
    """The end of one slice, reported as soon as it is recorded.

    Attributes:
        entity: Name of the entity.
        slice: Name of the slice.
        item_id: Id of its item.
        result: Its result, or None if it failed.
        error: Why it was not processed, or None.
        is_failed: Whether the slice is at fault; with an error that is not its own, it stays ready.
        is_beside: Whether it was applied to a table beside the entity's own, which is swapped in later.
    """

    entity: str
    slice: str
    item_id: str
    result: SliceResult | None = None
    error: LakewrightError | None = None
    is_failed: bool = False
    is_beside: bool = False

    def __str__(self) -> str:
        subject = f"{self.entity}: slice {self.slice}"
        if self.result is None:
            ended = "failed" if self.is_failed else "was not processed and stays ready"
            if isinstance(self.error, StoreUnavailable):  # its commit may have landed
                ended = "has an end that could not be recorded, which the next run finds out"
            return f"{subject} {ended}" if self.error is None else f"{subject} {ended}: {self.error.message}"
        found = self.result.summary
        # Historic counts the deletes that it infers as deleted, Merge counts them beside.
        inferred = () if found.strategy is Strategy.HISTORIC else ("inferred_deletes",)
        counts = (
            *("records_in_slice", "inserted", "updated", "deleted", *inferred, "unchanged", "closed"),
            *("superseded", "outdated", "quarantined"),
        )
        named = ", ".join(f"{name} {getattr(found, name)}" for name in counts if getattr(found, name))
        done = "applied beside the table" if self.is_beside else "processed"
        done += f" by {found.strategy.value} in {found.seconds:.1f} s"
        return f"{subject} {done}: {named or 'no records'}"


@dataclass(frozen=True, slots=True, repr=False)
class ProcessResult:
    """The slices that were processed, and why no more were.

    Attributes:
        slices: Processed slices, in order.
        failed: Names of the slices that failed in this run.
        errors: Their errors in the same order; the last may instead say what holds the next slice.
        waiting: Names of the slices that wait.
        others: Names of the slices that are left to other targets and instances.
        waits_for: Which applications they wait for; empty if they wait for none.
        is_stopped: Whether the run was asked to stop before all slices were processed.
        warnings: Warnings about the processing time.
        notes: Which processing times the slices got if a job declares some, and which were folded into one
            commit, or why none were.
        deviations: How bronze deviates from what the manifest has recorded.
        other_writers: That other programs have changed rows of the table, or None.
        unrecorded: Names of the slices that were begun, but whose end the manifest could not record.
    """

    slices: tuple[SliceResult, ...] = ()
    failed: tuple[str, ...] = ()
    errors: tuple[LakewrightError, ...] = ()
    waiting: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    waits_for: tuple[Reason, ...] = ()
    is_stopped: bool = False
    warnings: tuple[str, ...] = field(default=())
    notes: tuple[str, ...] = ()
    deviations: Deviations = NOTHING
    other_writers: Fault | None = None
    unrecorded: tuple[str, ...] = ()

    def followed_by(self, more: ProcessResult) -> ProcessResult:
        """Return the result with what was processed after it."""
        return replace(
            self,
            slices=(*self.slices, *more.slices),
            failed=(*self.failed, *more.failed),
            errors=(*self.errors, *more.errors),
            notes=(*self.notes, *more.notes),
            unrecorded=(*self.unrecorded, *more.unrecorded),
        )

    @property
    def is_unrecorded(self) -> bool:
        """Whether the processing ended because the manifest could not be read or written."""
        return any(isinstance(error, StoreUnavailable) for error in self.errors)

    @property
    def unsettled(self) -> Reason | None:
        """Which slices have no end in the manifest; None if all have."""
        return Reason(Code.UNSETTLED, {"slices": self.unrecorded}) if self.unrecorded else None

    @property
    def warning(self) -> Fault | None:
        """What an operator should look at beside the errors, or None."""
        found = self.deviations.fault
        return found if self.other_writers is None else self.other_writers.and_also(found)

    @property
    def is_success(self) -> bool:
        """Whether no slice failed, none was held by a failure or a lock, and nothing was interrupted.

        Slices that wait for another application are no failure: see `waiting`.
        """
        return not self.status.is_failure

    @property
    def all_warnings(self) -> tuple[str, ...]:
        """What the processing and its slices warned of; those of a slice begin with its name."""
        of_slices = (f"{done.name}: {text}" for done in self.slices for text in done.warnings)
        found = () if self.warning is None else (str(self.warning),)
        return (*self.warnings, *of_slices, *found)

    def check(self) -> ProcessResult:
        """Return the result itself if the processing succeeded.

        Raises:
            LakewrightError: The first error, such as `SliceError` for a slice that failed.
            RunFailed: It was interrupted.
        """
        if self.error is not None:
            raise self.error
        if self.is_stopped:
            raise RunFailed("the processing was interrupted", remedy="Process again: it takes what is left.")
        return self

    def __repr__(self) -> str:
        parts = ("slices", "failed", "errors", "waiting")
        return f"<ProcessResult {' '.join(f'{part}={len(getattr(self, part))}' for part in parts)}>"

    def _repr_html_(self) -> str:
        processed = (
            (done.name, "processed", done.summary.strategy.value, done.summary.records_in_slice, "")
            for done in self.slices
        )
        failed = ((name, "failed", "", "", "") for name in self.failed)
        unrecorded = ((name, "not recorded", "", "", "") for name in self.unrecorded)
        errors = (("", "error", "", "", fault.message) for fault in self.faults)
        waiting = ((name, "waits", "", "", "") for name in self.waiting)
        columns = ("slice", "state", "strategy", "records", "error")
        rows = (*processed, *failed, *unrecorded, *errors, *waiting)
        noted = (*self.all_warnings, *self.notes, *self.deviations.notes)
        return html_table("Slices", columns, rows, noted)

    @property
    def status(self) -> Status:
        """How the processing ended; what failed earlier in the same run, as in VALIDATE, is its failure."""
        if self.is_stopped:
            return Status.ABORTED
        if self.failed:
            return Status.FAILED
        if self.error is not None:
            is_own = BRIEF in self.error.details
            is_left = isinstance(self.error, OperatorError) and not is_own
            return Status.BLOCKED if is_left else Status.FAILED
        if self.warning is not None:
            return Status.SUCCESS_WITH_ERRORS
        return Status.SUCCESS if self.slices else Status.SKIPPED

    @property
    def faults(self) -> tuple[Fault, ...]:
        """The errors as faults; those of slices that failed name their slice."""
        return tuple(map(named_fault, self.errors))

    @property
    def error(self) -> LakewrightError | None:
        """The first error, or None."""
        return self.errors[0] if self.errors else None


_KEPT = {
    **{name: name for name in ("fingerprint", "watermarks", "drift", "strategy")},
    "processingTime": "processing_time",
}
"""What a PROCESSED record keeps of what a commit says of a slice, with its name there."""


def processed_content(name: str, content: Mapping[str, Any]) -> dict[str, Any]:
    """Return the content of the PROCESSED record of a slice of which a commit says this."""
    kept = {own: content[said] for said, own in _KEPT.items() if said in content}
    return {"slice": name, **kept, **metrics_content(content["metrics"])}


def landed_content(
    name: str, version: int | None, content: Mapping[str, Any], strategy: Strategy
) -> tuple[Summary, dict[str, Any]]:
    """Return the summary of a slice whose commit the log has, and the content of its PROCESSED record.

    Args:
        name: The name of the slice.
        version: The version of the commit; None if the log no longer has it.
        content: What the commit says of the slice.
        strategy: The strategy, if the commit does not name it.
    """
    metrics = {"strategy": strategy.value, **content.get("metrics", {}), "deltaVersion": version}
    summary = Summary.from_json(metrics)
    found = processed_content(name, {**content, "metrics": summary.as_json()})
    return summary, {**found, "adopted": True, "commit_run": content.get("run")}


def metrics_content(metrics: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a PROCESSED record holds of the metrics of a slice."""
    rows = metrics.get("quarantined")
    content = {"metrics": metrics, "delta_version": metrics["deltaVersion"]}
    return {**content, "quarantined": rows} if rows else content


NOT_OF_SLICE = (
    BackdatedError,
    JvmEnded,
    MigrationError,
    NotInstalled,
    OperatorError,
    RetryableError,
    SparkUnavailable,
    SpecError,
    UsageError,
)
"""Errors that say what is at fault by themselves, which is no slice."""


def is_slice_at_fault(
    lake: Lake, entity: Entity, error: LakewrightError, *, earlier: Iterable[str] = ()
) -> bool:
    """Return whether a slice of an entity fails because of its content or its order.

    A slice without a column that no slice had before is not at fault: the column is declared wrongly, or too
    early.

    Args:
        lake: The lake.
        entity: The entity.
        error: The error with which the slice's processing ended.
        earlier: Columns of slices before it that are not processed yet.
    """
    if isinstance(error, CommitTooLate | LateSliceError):
        return True
    if isinstance(error, NOT_OF_SLICE):
        return False
    if isinstance(error, DataLossError):
        return bool(error.details.get("of_slice"))
    if error.details.get("lacks"):
        state = observe_table(lake, entity.places(lake.settings).silver)
        known = {name.lower() for name in (*state.names, *earlier)}
        return any(entity.silver_name(name).lower() in known for name in error.details["lacks"])
    return True
