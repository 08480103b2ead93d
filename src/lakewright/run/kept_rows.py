"""The warnings that a build leaves rows of before, or adds them once more."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from lakewright.errors import Fault
from lakewright.errors.phrase import Command, Phrase
from lakewright.manifest.journal import KeptRows, Origin
from lakewright.plan.other_runs import commands_of, run_of
from lakewright.plan.phase import Phase

if TYPE_CHECKING:
    from lakewright.manifest.journal import Taint, TargetPhase
    from lakewright.manifest.store import Put
    from lakewright.plan.step import Step

__all__ = [
    "KEPT_ROWS",
    "REPEATED_ROWS",
    "after_build",
    "kept_rows",
    "kept_rows_warning",
    "may_have_added",
    "repeated_rows_warning",
]

KEPT_ROWS, REPEATED_ROWS = "kept_rows", "repeated_rows"
"""The codes of the warnings."""

_FORMER_ROWS = "was built with rows of before"
"""Why a target is dirty that was built without being emptied first."""


def kept_rows_warning(job: str, parameters: Mapping[str, str], name: str, kept: KeptRows) -> Fault:
    """Return the warning that building a target leaves rows of before."""
    emptied, built = _commands(job, parameters, name)
    return Fault(
        f"target {name!r}: {kept.why}",
        remedy=Phrase(
            "Type ",
            emptied,
            ", then ",
            built,
            ", and build each other instance that writes to the same place.",
        ),
        code=KEPT_ROWS,
    )


def repeated_rows_warning(job: str, parameters: Mapping[str, str], taint: Taint) -> Fault:
    """Return the warning that a run has added a target's rows, before it was killed or failed."""
    name = taint.place.target
    emptied, built = _commands(job, parameters, name)
    return Fault(
        f"target {name!r}: run {taint.run_id} has added its rows and did not record it: a build adds them "
        "once more",
        remedy=Phrase(
            "Resume that run instead: `--resume` adds no rows twice. If they are there twice, type ",
            emptied,
            ", then ",
            built,
            ", and build each other instance that writes there.",
        ),
        code=REPEATED_ROWS,
    )


def _commands(job: str, parameters: Mapping[str, str], target: str) -> tuple[Command, Command]:
    """Return the commands that empty a target in an instance, and that build it there."""
    run, chosen = run_of(job, parameters), ["-t", target]
    (emptied,) = commands_of([run], phase=Phase.TRUNCATE, options=chosen)
    (built,) = commands_of([run], options=chosen)
    return emptied, built


def kept_rows(reason: str, words: str | None) -> KeptRows | None:
    """Return the rows of before that a target leaves which is to be built again; None if it replaces them.

    Args:
        reason: Why it is to be built again.
        words: Why building it leaves rows, as the end of a sentence; None if it leaves none.
    """
    return None if words is None else KeptRows(f"{reason}, and {words}")


def may_have_added(run_id: str, words: str) -> KeptRows:
    """Return the rows that a run was cut off while it added: nobody knows whether they are there.

    Args:
        run_id: The run.
        words: What building the target does, as the end of a sentence.
    """
    return KeptRows(f"run {run_id} may have added its rows already, and {words}", Origin.UNSURE)


def after_build(place: TargetPhase, step: Step) -> Put:
    """Return the put that a built target is clean, unless it holds rows of before, until it is emptied.

    Who builds what may have been added already knows what is there.
    """
    kept, added = step.kept, step.added
    if added is not None and not added.is_meant:
        kept = KeptRows(f"its rows came more than once: {added.why}", Origin.TWICE)
    if kept is None or kept.origin is Origin.UNSURE:
        return place.untainted()
    return place.tainted(_FORMER_ROWS, kept=kept, is_built=True)
