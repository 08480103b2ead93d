"""Results of the project's own tests."""

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
    """The result of one assertion.

    Attributes:
        status: FAILED if it does not hold or could not be checked, SKIPPED if it was not reached.
        failures: The conditions that do not hold, with sample rows.
        error: The error that prevented the check.
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
    """The result of one test.

    Attributes:
        runs: The runs of its targets and fixtures: the build lifecycle, then DESTROY; none without targets.
        error: Why it could not be run.
    """

    name: str
    description: str | None = None
    runs: tuple[RunResult, ...] = ()
    assertions: tuple[AssertionResult, ...] = ()
    error: Fault | None = None
    seconds: float = 0.0

    def targets(self) -> Iterator[TargetResult]:
        """Yield the result of each target in each phase."""
        for run in self.runs:
            yield from run.targets()

    @property
    def status(self) -> Status:
        """FAILED if anything failed; SUCCESS_WITH_ERRORS if a target reports it; else SUCCESS."""
        if self.error is not None:
            return Status.FAILED
        found = overall([*(run.status for run in self.runs), *(each.status for each in self.assertions)])
        return Status.SUCCESS if found is Status.SKIPPED else found

    @property
    def interrupted_by(self) -> int | None:
        """The signal that interrupted it, or None."""
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
