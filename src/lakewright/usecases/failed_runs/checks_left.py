"""Failed runs of which only checks are left, and which check what is to be mended first.

After an undo, `--resume` of a run that failed in VERIFY checks the rows that are still to be removed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from lakewright.slices.other_runs import entity_name, takes_recorded
from lakewright.spec.words import first_of
from lakewright.usecases.failed_runs.resume import (
    NextStep,
    checks_left,
    is_rewind,
    next_step,
    resume_command,
)
from lakewright.usecases.placed import placed_entities

if TYPE_CHECKING:
    from lakewright.app import App
    from lakewright.manifest.journal import Run
    from lakewright.slices.deviations import CorrectedSlices
    from lakewright.spec.models.job import Job
    from lakewright.usecases.failed_runs.next_slices import NextSlices
    from lakewright.usecases.staleness.tainted_targets import TaintedTarget

__all__ = ["next_steps"]

MOST_NAMED = 3


def next_steps(
    app: App,
    runs: Iterable[Run],
    slices: NextSlices,
    tainted: Collection[TaintedTarget],
    corrected: Collection[CorrectedSlices] = (),
) -> dict[str, NextStep]:
    """Return what to do about failed runs, by their ids; those come last that check what is mended before.

    Args:
        app: The project.
        runs: The failed runs.
        slices: What runs take next.
        tainted: The targets that are to be built again.
        corrected: Skipped slices that have changed, which are to be processed first.
    """
    steps: dict[str, NextStep] = {}
    for run in runs:
        step = next_step(app, run, slices)
        if (subject := _mended_before(app, run, step, tainted, corrected)) is not None:
            step = replace(
                step,
                commands=(resume_command(run),),
                caution=f"first type what is named for {subject}",
                left_out=None,
                is_check_only=True,
                comes_last=True,
            )
        steps[run.run_id] = step
    return steps


def _mended_before(
    app: App,
    run: Run,
    step: NextStep,
    tainted: Collection[TaintedTarget],
    corrected: Collection[CorrectedSlices],
) -> str | None:
    """Return what is to be mended before the checks of a run, or None."""
    job = app.project.jobs.get(run.job)
    if job is None or is_rewind(run) or step.refused is not None:
        return None
    found = (each.get("instance", {}) for each in checks_left(app, run))
    by_key = {_key(instance): instance for instance in found}
    if not by_key:
        return None
    if (slice_ := next(_corrected(app, job, by_key.values(), corrected), None)) is not None:
        return slice_
    of_job = [
        each
        for each in tainted
        if each.target in job.targets and not by_key.keys().isdisjoint(map(_key, each.instances))
    ]
    # A run of the whole job builds them, unless they must be emptied.
    if step.commands != (resume_command(run),) and not any(each.is_emptied for each in of_job):
        return None
    return first_of(list(dict.fromkeys(each.target for each in of_job)), MOST_NAMED) if of_job else None


def _key(parameters: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(parameters.items()))


def _corrected(
    app: App, job: Job, instances: Collection[Mapping[str, str]], corrected: Collection[CorrectedSlices]
) -> Iterator[str]:
    """Yield the corrected slices that instances of a job take.

    Of entities that read one folder, the slice is told with the first one.
    """
    project = app.project
    declared = [project.targets[name].raw for name in job.targets if name in project.targets]
    folders = {entity.called: places.bronze for entity, places in placed_entities(app)} if corrected else {}
    for each in corrected:
        same = {called for called, folder in folders.items() if folder == folders.get(each.entity)}
        takers = [target for target in declared if entity_name(project, target) in same]
        for name in each.names:
            if any(
                takes_recorded(project, job, target, instance, name)
                for target in takers
                for instance in instances
            ):
                yield f"{name} of {each.entity}"
