"""Failed runs of which only checks are left, and which check what is to be mended first.

After an undo, `--resume` of a run that failed in VERIFY checks the rows that are still to be removed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from lakewright.slices.other_runs import entity_name, takes_recorded
from lakewright.spec.words import first_of
from lakewright.usecases.failed_runs.resume import (
    NextStep,
    has_failed_in_checks_alone,
    is_rewind,
    resume_command,
)
from lakewright.usecases.failed_runs.undone_runs import given_instances

if TYPE_CHECKING:
    from lakewright.app import App
    from lakewright.manifest.journal import Run
    from lakewright.usecases.bronze_status import Corrected
    from lakewright.usecases.staleness.tainted_targets import TaintedTarget

__all__ = ["with_checks_last"]

MOST_NAMED = 3


def with_checks_last(
    app: App,
    steps: Mapping[str, tuple[Run, NextStep]],
    tainted: Collection[TaintedTarget],
    corrected: Collection[Corrected] = (),
) -> dict[str, NextStep]:
    """Return what to do about failed runs; those come last that check what is to be mended before.

    Args:
        app: The project.
        steps: The failed runs by their ids, each with what to do about it alone.
        tainted: The targets that are to be built again.
        corrected: Skipped slices that have changed, which are to be processed first.
    """
    return {
        run_id: replace(
            step,
            commands=(resume_command(run),),
            caution=f"first type what is named for {subject}",
            left_out=None,
            is_check_only=True,
            comes_last=True,
        )
        if (subject := _mended_before(app, run, step, tainted, corrected)) is not None
        else step
        for run_id, (run, step) in steps.items()
    }


def _mended_before(
    app: App,
    run: Run,
    step: NextStep,
    tainted: Collection[TaintedTarget],
    corrected: Collection[Corrected],
) -> str | None:
    """Return what is to be mended before the checks of a run, or None."""
    job = app.project.jobs.get(run.job)
    if job is None or is_rewind(run) or step.refused is not None or not has_failed_in_checks_alone(app, run):
        return None
    of_job = [each for each in tainted if each.target in job.targets]
    if step.left_out is not None and not any(each.is_emptied for each in of_job):
        return None  # the run of the whole job builds them
    names = list(dict.fromkeys(each.target for each in of_job)) or list(_corrected(app, run, corrected))
    return first_of(names, MOST_NAMED) if names else None


def _corrected(app: App, run: Run, corrected: Collection[Corrected]) -> Iterator[str]:
    """Yield the corrected slices that the instances of a run take."""
    targets, job = app.project.targets, app.project.jobs[run.job]
    instances = [dict(each) for each in given_instances(app.project)(run)]
    declared = [targets[name].raw for name in job.targets if name in targets]
    for each in corrected:
        takers = [target for target in declared if entity_name(app.project, target) == each.entity]
        for name in each.slices.names:
            if any(
                takes_recorded(app.project, job, target, instance, name)
                for target in takers
                for instance in instances
            ):
                yield f"{name} of {each.entity}"
