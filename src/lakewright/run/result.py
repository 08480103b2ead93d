"""The result of a run: printed, recorded, and turned into an exit code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from signal import SIGINT
from typing import Any

from lakewright.errors import Fault, ItemFailed, ItemLocked, LakeMoved, LeaseHeld, RunFailed
from lakewright.manifest.plain_values import document_of, finite
from lakewright.notebook import html_table
from lakewright.plan.phase import Phase
from lakewright.plan.status import Status, overall
from lakewright.plan.step import instances_as_json, parameters_text
from lakewright.spec.reason import Reason, reasons_document, reasons_text

_HELD = frozenset({ItemFailed.code, ItemLocked.code, LakeMoved.code, LeaseHeld.code})


@dataclass(frozen=True, slots=True, repr=False)
class TargetResult:
    """The result of one target in one phase of one instance.

    Attributes:
        warnings: What the target warned of, besides warnings of slices, which are in their metrics; see
            `all_warnings`.
        is_reached: Whether the run came to it; what it did not come to is skipped.
    """

    name: str
    kind: str
    phase: Phase
    status: Status
    reasons: tuple[Reason, ...] = ()
    seconds: float = 0.0
    metrics: Mapping[str, Any] = field(default_factory=dict)
    error: Fault | None = None
    warnings: tuple[str, ...] = ()
    is_reached: bool = True

    @property
    def all_warnings(self) -> tuple[str, ...]:
        """What the target warned of, and then each of its slices, with the name of the slice."""
        slices = self.metrics.get("slices", ()) if self.kind == "entity" else ()
        warnings = (
            f"{each.get('slice', '')}: {text}" for each in slices for text in each.get("warnings") or ()
        )
        return (*self.warnings, *warnings)

    @property
    def is_undone(self) -> bool:
        """Whether it failed, was blocked, interrupted or not reached."""
        return self.status.is_failure or not self.is_reached

    @property
    def is_held(self) -> bool:
        """Whether it did not run because something is locked, or waits for an operator after a failure."""
        return self.status is Status.BLOCKED and self.error is not None and self.error.code in _HELD

    def __repr__(self) -> str:
        why = reasons_text(self.reasons) if self.error is None else self.error.message
        return f"<TargetResult {self.phase} {self.name} {self.status.value}{why and ': ' + why}>"

    def as_json(self) -> dict[str, Any]:
        """Return the target as `job -o json` prints it."""
        named = ("name", "kind", "status", "seconds", "metrics", "error", "warnings", "is_reached")
        exact = {"seconds": round(self.seconds, 3), "metrics": finite(dict(self.metrics))}
        return document_of(self, *named, **exact, **reasons_document(self.reasons))


def status_of_part(targets: Sequence[TargetResult]) -> Status:
    """Return the status of a part of a run; one that was stopped after it did something is ABORTED.

    Args:
        targets: What its steps have come to.

    Example:
        >>> from dataclasses import replace
        >>> cut = TargetResult("a", "copy", Phase.BUILD, Status.SKIPPED, is_reached=False)
        >>> status_of_part([cut, replace(cut, status=Status.SUCCESS, is_reached=True)]).value
        'ABORTED'
    """
    found = overall(target.status for target in targets)
    is_cut = any(target.is_undone for target in targets)
    return Status.ABORTED if is_cut and found.is_success else found


@dataclass(frozen=True, slots=True)
class PhaseResult:
    """The result of one phase of one instance.

    Attributes:
        note: Why it has no targets.
        seconds: From the start of its first step to the end of its last one; 0 if none ran.
    """

    phase: Phase
    targets: tuple[TargetResult, ...]
    note: str | None = None
    seconds: float = 0.0

    @property
    def status(self) -> Status:
        """The overall status of its targets; a phase without targets is skipped."""
        return status_of_part(self.targets) if self.targets else Status.SKIPPED


@dataclass(frozen=True, slots=True)
class InstanceResult:
    """The result of one instance."""

    parameters: Mapping[str, str]
    phases: tuple[PhaseResult, ...]

    @property
    def status(self) -> Status:
        """The overall status of its targets in all phases; ABORTED if some were not reached."""
        return status_of_part([target for phase in self.phases for target in phase.targets])


@dataclass(frozen=True, slots=True, repr=False)
class RunResult:
    """The result of a run of a job."""

    run_id: str
    project: str
    job: str
    phase: Phase
    started: datetime
    finished: datetime
    instances: tuple[InstanceResult, ...]
    interrupted_by: int | None = None

    def targets(self) -> tuple[TargetResult, ...]:
        """Return the result of every target, in the order of the plan."""
        phases = (phase for instance in self.instances for phase in instance.phases)
        return tuple(target for phase in phases for target in phase.targets)

    @property
    def status(self) -> Status:
        """The overall status of all targets; ABORTED for an interrupted run with steps left."""
        if self.interrupted_by is not None and any(t.is_undone for t in self.targets()):
            return Status.ABORTED
        return overall(target.status for target in self.targets())

    @property
    def is_success(self) -> bool:
        """Whether no target failed, was blocked, interrupted or not reached."""
        return not self.status.is_failure

    def check(self) -> RunResult:
        """Return the result itself if the run succeeded.

        Raises:
            RunFailed: Some targets did not succeed; the error names the first one and its error.
        """
        if self.is_success:
            return self
        undone = [target for target in self.targets() if target.is_undone]
        first = next((target for target in undone if target.error is not None), undone[0] if undone else None)
        error = None if first is None else first.error
        why = "" if first is None else f": {first.name} in {first.phase}"
        raise RunFailed(
            f"{self.job} {self.phase.value.lower()} ended {self.status.value}{why}"
            + ("" if error is None else f": {error.message}"),
            remedy=None if error is None else error.remedy,
            details={"run_id": self.run_id, "status": self.status.value, "undone": len(undone)},
        )

    def __repr__(self) -> str:
        return f"<RunResult {self.job} {self.phase.value.lower()} {self.status.value}, run {self.run_id}>"

    def _repr_html_(self) -> str:
        rows = (
            (
                parameters_text(instance.parameters),
                target.phase,
                target.name,
                target.status.value,
                f"{target.seconds:.1f}",
                reasons_text(target.reasons) if target.error is None else target.error.message,
            )
            for instance in self.instances
            for phase in instance.phases
            for target in phase.targets
        )
        columns = ("instance", "phase", "target", "status", "seconds", "reasons")
        notes = (
            " ".join(filter(None, (target.name, parameters_text(instance.parameters)))) + f": {text}"
            for instance in self.instances
            for phase in instance.phases
            for target in phase.targets
            for text in target.all_warnings
        )
        return html_table(f"{self.job} {self.phase.value.lower()}: {self.status.value}", columns, rows, notes)

    @property
    def exit_code(self) -> int:
        """0: done, 1: failed, 4: held by a run or an earlier failure, 5: only VERIFY failed, 128 + signal."""
        if self.interrupted_by is not None:
            return 128 + self.interrupted_by
        failed = [target for target in self.targets() if target.status is Status.FAILED]
        if failed:
            return 5 if all(target.phase is Phase.VERIFY for target in failed) else 1
        if any(target.status is Status.ABORTED for target in self.targets()):
            return 128 + SIGINT
        if any(target.is_held for target in self.targets()):
            return 4
        return 1 if self.status.is_failure else 0

    @property
    def summary(self) -> str:
        """The last line on the console, easy to find with grep."""
        counts = Counter(target.status for target in self.targets())
        shown = " ".join(
            f"{'WITH_ERRORS' if status is Status.SUCCESS_WITH_ERRORS else status.value}={counts[status]}"
            for status in Status
        )
        return f"Done. {shown} in {(self.finished - self.started).total_seconds():.1f} s"

    def as_json(self) -> dict[str, Any]:
        """Return the document that `job -o json` prints."""
        named = ("run_id", "project", "job", "phase", "status", "started", "finished")
        instances = instances_as_json(self.instances, lambda phase: phase.targets)
        return document_of(self, *named, phase=self.phase.value.lower(), instances=instances)
