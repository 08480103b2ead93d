"""The warnings that a build leaves rows of before, or adds them once more."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from lakewright.errors import Fault
from lakewright.plan.other_runs import commands_of, run_of
from lakewright.plan.phase import Phase
from lakewright.run.added_before import ADDED_BEFORE
from lakewright.run.outputs import is_gone

if TYPE_CHECKING:
    from lakewright.manifest.journal import Taint, TargetPhase
    from lakewright.manifest.store import Put
    from lakewright.plan.resource import Resource
    from lakewright.plan.step import Step

__all__ = [
    "FORMER_ROWS",
    "KEPT_ROWS",
    "REPEATED_ROWS",
    "after_build",
    "holds_former",
    "is_added_twice",
    "kept_of",
    "kept_rows_warning",
    "repeated_rows_warning",
]

KEPT_ROWS, REPEATED_ROWS = "kept_rows", "repeated_rows"
"""The codes of the warnings."""

FORMER_ROWS = "was built with rows of before"
"""Why a target is dirty that was built without being emptied first."""

_ADDED_TWICE = "its rows came more than once"
"""How it is told that a target has added rows which were there."""

_MAY_HAVE = "may have added its rows already"


def kept_rows_warning(
    job: str, parameters: Mapping[str, str], taint: Taint, places: Collection[Resource]
) -> Fault | None:
    """Return the warning that building a tainted target leaves rows of before.

    None if it replaces them, or if nothing exists where it writes.
    """
    if taint.kept is None or is_gone(places):
        return None
    name = taint.place.target
    emptied, built = _commands(job, parameters, name)
    return Fault(
        f"target {name!r}: {taint.kept}",
        remedy=f"Before it is built, type what `lakewright status` names. Afterwards, type `{emptied}`, then "
        f"`{built}`, and build each other instance that writes to the same place.",
        code=KEPT_ROWS,
        details={"kept": taint.kept},
    )


def repeated_rows_warning(job: str, parameters: Mapping[str, str], taint: Taint) -> Fault:
    """Return the warning that a run has added a target's rows, before it was killed or failed."""
    name = taint.place.target
    emptied, built = _commands(job, parameters, name)
    return Fault(
        f"target {name!r}: run {taint.run_id} has added its rows and did not record it: a build adds them "
        "once more",
        remedy="Resume that run instead, as `lakewright status` says: `--resume` adds no rows twice. If they "
        f"are there twice, type `{emptied}`, then `{built}`, and build each other instance that writes "
        "there.",
        code=REPEATED_ROWS,
    )


def _commands(job: str, parameters: Mapping[str, str], target: str) -> tuple[str, str]:
    """Return the commands that empty a target in an instance, and that build it there."""
    run, chosen = run_of(job, parameters), ["-t", target]
    (emptied,) = commands_of([run], phase=Phase.TRUNCATE, options=chosen)
    (built,) = commands_of([run], options=chosen)
    return emptied, built


def kept_of(step: Step) -> str | None:
    """Return why building a step's target leaves rows of before, or None."""
    warning = step.warning
    return None if warning is None or warning.code != KEPT_ROWS else str(warning.details["kept"])


def is_added_twice(kept: str | None) -> bool:
    """Return whether a target is to be emptied because its rows came more than once."""
    return kept is not None and kept.startswith(_ADDED_TWICE)


def _kept_after(step: Step) -> str | None:
    """Return which rows of before a target holds once it is built, or None."""
    warning = step.warning
    if warning is not None and warning.code == ADDED_BEFORE and not warning.details["is_meant"]:
        return f"{_ADDED_TWICE}: {warning.details['added']}"
    return kept_of(step)


def may_have_added(run_id: str) -> str:
    """Return that a run was cut off while it added rows: nobody knows whether they are there."""
    return f"run {run_id} {_MAY_HAVE}"


def holds_former(kept: str | None) -> bool:
    """Return whether a target is sure to hold rows of before, given why a build leaves them."""
    return kept is not None and _MAY_HAVE not in kept


def after_build(place: TargetPhase, step: Step) -> Put:
    """Return the put that a built target is clean, unless it holds rows of before, until it is emptied.

    Who builds what may have been added already knows what is there.
    """
    kept = _kept_after(step)
    if not holds_former(kept):
        return place.untainted()
    return place.tainted(FORMER_ROWS, kept=kept)
