"""The warning that a build leaves rows of before, of a target that reads a table which has changed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from lakewright.errors import Fault
from lakewright.plan.other_runs import commands_of, run_of
from lakewright.plan.phase import Phase

if TYPE_CHECKING:
    from lakewright.manifest.journal import Taint
    from lakewright.plan.step import Step

__all__ = ["KEPT_ROWS", "kept_of", "kept_rows_warning"]

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
