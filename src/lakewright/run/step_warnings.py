"""Warnings of a plan that a step ends with, once it has run."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from lakewright.plan.planner import MAY_BE_ADDED
from lakewright.plan.status import Status
from lakewright.run.added_before import ADDED_BEFORE
from lakewright.run.kept_rows import KEPT_ROWS, REPEATED_ROWS
from lakewright.run.losses import LOST_ROWS, REMOVED_ROWS, REPLACED_ROWS
from lakewright.run.table_marks import CHANGED_ROWS

if TYPE_CHECKING:
    from lakewright.plan.outcome import Outcome
    from lakewright.plan.step import Step

__all__ = ["with_warning"]

_CODES = (KEPT_ROWS, REPEATED_ROWS, LOST_ROWS, CHANGED_ROWS, MAY_BE_ADDED, ADDED_BEFORE)
"""Those that are known before the step runs; entities tell theirs by themselves."""


def with_warning(outcome: Outcome, step: Step) -> Outcome:
    """Return the outcome of a step with the warning of its plan; a failed one is told alone.

    What was removed was asked for, and what was replaced may be built again after it: neither is an error.
    Nor are rows that are added once more by a target that is declared to be built always.
    """
    warning = step.warning
    if warning is None or outcome.status.is_failure:
        return outcome
    is_meant = warning.code == ADDED_BEFORE and warning.details["is_meant"]
    if is_meant or warning.code in (REMOVED_ROWS, REPLACED_ROWS):
        return replace(outcome, warnings=(*outcome.warnings, f"{warning.message}. {warning.remedy}"))
    if warning.code not in _CODES:
        return outcome
    error = warning if outcome.error is None else outcome.error.and_also(warning)
    return replace(outcome, status=Status.SUCCESS_WITH_ERRORS, error=error)
