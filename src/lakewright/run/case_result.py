"""How the project's own tests ended."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from lakewright.errors import Fault
from lakewright.plan.status import Status, overall
from lakewright.run.result import RunResult, TargetResult

__all__ = ["AssertionResult", "CaseResult"]


@dataclass(frozen=True, slots=True)
class AssertionResult:
    """How one assertion ended.

    Attributes:
        status: FAILED if it doesn't hold or could not be checked, SKIPPED if it wasn't reached.
        failures: What doesn't hold, with rows to show for it.
        error: What went wrong while it was checked.
    """

    name: str
    kind: str
    status: Status
    description: str | None = None
    failures: tuple[str, ...] = ()
    error: Fault | None = None
    seconds: float = 0.0

    def as_json(self) -> dict[str, Any]:
        """Return the assertion as `test -o json` prints it."""
        return {
            "name": self.name,
            "kind": self.kind,
            "description": self.description,
            "status": self.status.value,
            "failures": list(self.failures),
            "error": self.error.as_json() if self.error else None,
            "seconds": round(self.seconds, 3),
        }


@dataclass(frozen=True, slots=True)
class CaseResult:
    """How one test ended.

    Attributes:
        runs: Of its targets and fixtures: the build lifecycle, then DESTROY; none where it has no targets.
        error: Why it could not be run at all.
    """

    name: str
    description: str | None = None
    runs: tuple[RunResult, ...] = ()
    assertions: tuple[AssertionResult, ...] = ()
    error: Fault | None = None
    seconds: float = 0.0

    def targets(self) -> Iterator[TargetResult]:
        """Yield how each target ended in each phase."""
        for run in self.runs:
            yield from run.targets()

    @property
    def status(self) -> Status:
        """FAILED where anything failed; SUCCESS_WITH_ERRORS where a target says so; else SUCCESS."""
        if self.error is not None:
            return Status.FAILED
        found = overall([*(run.status for run in self.runs), *(each.status for each in self.assertions)])
        return Status.SUCCESS if found is Status.SKIPPED else found

    @property
    def interrupted_by(self) -> int | None:
        """The signal that ended it."""
        return next((run.interrupted_by for run in self.runs if run.interrupted_by is not None), None)

    def as_json(self) -> dict[str, Any]:
        """Return the test as `test -o json` prints it."""
        return {
            "name": self.name,
            "description": self.description,
            "status": self.status.value,
            "seconds": round(self.seconds, 3),
            "targets": [{"phase": target.phase.value, **target.as_json()} for target in self.targets()],
            "assertions": [assertion.as_json() for assertion in self.assertions],
            "error": self.error.as_json() if self.error else None,
        }
