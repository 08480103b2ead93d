"""Warnings of a plan that a step ends with, once it has run."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING

from lakewright.errors import Fault
from lakewright.errors.phrase import Phrase
from lakewright.plan.planner import MAY_BE_ADDED
from lakewright.plan.status import Status
from lakewright.run.rows_of_others import REMOVED_ROWS, ROWS_ADDED_AGAIN

if TYPE_CHECKING:
    from lakewright.plan.outcome import Outcome
    from lakewright.plan.step import Step

__all__ = ["with_warning"]

_CODES = (MAY_BE_ADDED, ROWS_ADDED_AGAIN)
"""Those that are known before the step runs; entities tell theirs by themselves."""


def with_warning(outcome: Outcome, step: Step) -> Outcome:
    """Return the outcome of a step with the warning of its plan; a failed one is told alone.

    What was removed was asked for, and what was replaced may be built again after it: neither is an error.
    Nor are rows that are added once more by a target that is declared to be built always.
    """
    if outcome.status.is_failure:
        return outcome
    is_meant = step.added is not None and step.added.is_meant
    mild = (REMOVED_ROWS, *((ROWS_ADDED_AGAIN,) if is_meant else ()))
    told = (Phrase(f"{each.message}. ", each.remedy or "") for each in step.warnings if each.code in mild)
    outcome = replace(outcome, warnings=(*outcome.warnings, *told))
    errors = [each for each in step.warnings if each.code in _CODES and each.code not in mild]
    if not errors:
        return outcome
    error = reduce(Fault.and_also, errors if outcome.error is None else (outcome.error, *errors))
    return replace(outcome, status=Status.SUCCESS_WITH_ERRORS, error=error)
