"""The commands of runs, without the targets whose rows they would add once more."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from lakewright.errors import LakewrightError
from lakewright.plan.other_runs import MOST_TYPED, OtherRun, commands_of
from lakewright.run.added_before import AddedBefore
from lakewright.run.build_history import BuildHistory
from lakewright.usecases.staleness.declared_nodes import offline_lake

if TYPE_CHECKING:
    from lakewright.app import App

__all__ = ["added_before", "commands_adding_once", "targets_adding_once"]


def commands_adding_once(app: App, runs: Iterable[OtherRun]) -> tuple[str, ...]:
    """Return the commands of runs; those of instances that have added rows choose the job's other targets.

    The rows of targets with mode APPEND are there since an earlier run of the instance.
    """
    chosen: dict[tuple[str, tuple[str, ...]], list[OtherRun]] = {}
    before: dict[str, AddedBefore] = {}
    for run in runs:
        if run.job not in before:
            before[run.job] = added_before(app, run.job)
        names = _adding_once(before[run.job], [run.parameters])
        chosen.setdefault((run.job, names), []).append(run)
    return tuple(
        command
        for (_, names), of_job in chosen.items()
        for command in commands_of(of_job, options=[text for name in names for text in ("-t", name)])
    )


def targets_adding_once(
    app: App, job: str, instances: Iterable[Sequence[tuple[str, str]]]
) -> tuple[str, ...]:
    """Return the targets of a job that add no rows once more in its instances; none if these are all."""
    return _adding_once(added_before(app, job), instances)


def added_before(app: App, job: str) -> AddedBefore:
    """Return what finds earlier builds of a job's instances on this machine, without Spark."""
    history = BuildHistory(app.project, offline_lake(app), app.journal, app.project.jobs[job])
    return AddedBefore(history, looks_far=False)


def _adding_once(before: AddedBefore, instances: Iterable[Sequence[tuple[str, str]]]) -> tuple[str, ...]:
    try:
        added = frozenset().union(*(before.targets(dict(each)) for each in islice(instances, MOST_TYPED)))
        names = before.job.target_names(before.project.job_scope(before.job)) if added else ()
    except LakewrightError:  # a wrong definition is told by itself
        return ()
    return tuple(name for name in names if name not in added)
