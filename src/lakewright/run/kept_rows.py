"""The warning that a build leaves rows of before, of a target that reads a table which has changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from lakewright.errors import Fault
from lakewright.plan.other_runs import commands_of, run_of
from lakewright.plan.phase import Phase
from lakewright.plan.status import Status

if TYPE_CHECKING:
    from lakewright.manifest.journal import Taint
    from lakewright.plan.outcome import Outcome
    from lakewright.plan.step import Step

__all__ = ["kept_of", "kept_rows_warning", "with_kept_rows"]

KEPT_ROWS = "kept_rows"
"""The code of the warning."""


def kept_rows_warning(job: str, parameters: Mapping[str, str], taint: Taint) -> Fault | None:
    """Return the warning that building a tainted target leaves rows of before; None if it replaces them."""
    if taint.kept is None:
        return None
    name = taint.place.target
    run, chosen = run_of(job, parameters), ["-t", name]
    (emptied,) = commands_of([run], phase=Phase.TRUNCATE, options=chosen)
    (built,) = commands_of([run], options=chosen)
    return Fault(
        f"target {name!r}: {taint.kept}",
        remedy=f"Before it is built, type what `lakewright status` names. Afterwards, type `{emptied}`, then "
        f"`{built}`, and build each other instance that writes to the same place.",
        code=KEPT_ROWS,
        details={"kept": taint.kept},
    )


def kept_of(step: Step) -> str | None:
    """Return why building a step's target leaves rows of before, or None."""
    warning = step.warning
    return None if warning is None or warning.code != KEPT_ROWS else str(warning.details["kept"])


def with_kept_rows(outcome: Outcome, step: Step) -> Outcome:
    """Return the outcome of a step with the warning that its target holds rows of before, if it has one."""
    if step.warning is None or kept_of(step) is None or not outcome.status.is_success:
        return outcome
    error = step.warning if outcome.error is None else outcome.error.and_also(step.warning)
    return replace(outcome, status=Status.SUCCESS_WITH_ERRORS, error=error)
