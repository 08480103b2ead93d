"""Failed runs of which only checks are left, and which check what is to be mended first.

After an undo, `--resume` of a run that failed in VERIFY checks the rows that are still to be removed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from lakewright.errors import LakewrightError
from lakewright.run.leftovers import is_entry_undone
from lakewright.slices.other_runs import entity_name, takes_recorded
from lakewright.spec.words import first_of
from lakewright.usecases.failed_runs.resume import (
    NextStep,
    has_failed_in_checks_alone,
    is_rewind,
    resume_command,
)

if TYPE_CHECKING:
    from lakewright.app import App
    from lakewright.manifest.journal import Run
    from lakewright.spec.models.job import Job
    from lakewright.spec.project import Project
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
    undone = [each for each in app.journal.targets(run.run_id) if is_entry_undone(each)]
    instances = list({_key(each.get("instance", {})): each.get("instance", {}) for each in undone}.values())
    if (slice_ := next(_corrected(app, job, instances, corrected), None)) is not None:
        return slice_
    keys = set(map(_key, instances))
    of_job = [
        each
        for each in tainted
        if each.target in job.targets and not keys.isdisjoint(map(_key, each.instances))
    ]
    # A run of the whole job builds them, unless they must be emptied.
    if step.commands != (resume_command(run),) and not any(each.is_emptied for each in of_job):
        return None
    return first_of(list(dict.fromkeys(each.target for each in of_job)), MOST_NAMED) if of_job else None


def _key(parameters: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(parameters.items()))


def _corrected(
    app: App, job: Job, instances: Sequence[Mapping[str, str]], corrected: Collection[Corrected]
) -> Iterator[str]:
    """Yield the corrected slices that instances of a job take.

    Of entities that read one folder, the slice is told with the first one.
    """
    project = app.project
    declared = [project.targets[name].raw for name in job.targets if name in project.targets]
    folders = [(target, _folder(project, entity_name(project, target))) for target in declared]
    for each in corrected:
        folder = _folder(project, each.entity)
        takers = [target for target, own in folders if own is not None and own == folder]
        for name in each.slices.names:
            if any(
                takes_recorded(project, job, target, instance, name)
                for target in takers
                for instance in instances
            ):
                yield f"{name} of {each.entity}"


def _folder(project: Project, called: str | None) -> str | None:
    with suppress(LakewrightError):  # its places are told by themselves
        return None if called is None else project.entity(called).places(project.lake).bronze
    return None
