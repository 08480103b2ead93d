"""The commands of runs, without the targets whose rows they would add once more or would leave."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from lakewright.errors import LakewrightError
from lakewright.errors.phrase import Command
from lakewright.plan.other_runs import MOST_TYPED, OtherRun, commands_of
from lakewright.run.added_before import AddedBefore
from lakewright.run.build_history import BuildHistory
from lakewright.spec.expressions.secrets import HIDDEN
from lakewright.usecases.staleness.declared_nodes import offline_lake
from lakewright.usecases.staleness.earlier_builds import former_names
from lakewright.usecases.staleness.emptied import appends_of

if TYPE_CHECKING:
    from lakewright.app import App
    from lakewright.manifest.journal import Taint
    from lakewright.run.build_history import Instance, Key

__all__ = ["added_before", "commands_adding_once", "instance_of", "targets_adding_once"]


def commands_adding_once(
    app: App, runs: Iterable[OtherRun], building: Callable[[], frozenset[Instance]] = frozenset
) -> tuple[Command, ...]:
    """Return the commands of runs; those of instances that have added rows choose the job's other targets.

    The rows of targets with mode APPEND are there since an earlier run of the instance. Targets that must be
    emptied before they are built, and appends to be built again, are left to the commands that do so.

    Args:
        app: The project.
        runs: The runs.
        building: Returns the targets and instances whose rows the present run adds before anybody types the
            commands.
    """
    adding: frozenset[Instance] | None = None
    chosen: list[tuple[str, tuple[str, ...] | None, list[OtherRun]]] = []
    before: dict[str, AddedBefore] = {}
    left: dict[str, frozenset[Instance]] = {}
    taints: tuple[Taint, ...] | None = None
    for run in runs:
        if run.job not in before:
            taints = tuple(former_names(app).taints()) if taints is None else taints
            adding = building() if adding is None else adding
            before[run.job] = added_before(app, run.job)
            left[run.job] = adding | _to_be_emptied(taints) | _appends_to_build(app, run.job, taints)
        names = _adding_once(before[run.job], [run.parameters], left[run.job])
        if chosen and chosen[-1][:2] == (run.job, names):
            chosen[-1][2].append(run)
        else:  # the runs stay in their order, in which they take slices
            chosen.append((run.job, names, [run]))
    return tuple(
        command
        for _, names, of_job in chosen
        if names != ()  # all is left to other commands
        for command in commands_of(of_job, options=[text for name in names or () for text in ("-t", name)])
    )


def targets_adding_once(
    app: App, job: str, instances: Iterable[Sequence[tuple[str, str]]]
) -> tuple[str, ...] | None:
    """Return the targets of a job that add no rows once more in its instances; None if these are all."""
    return _adding_once(added_before(app, job), instances, _to_be_emptied(former_names(app).taints()))


def added_before(app: App, job: str) -> AddedBefore:
    """Return what finds earlier builds of a job's instances on this machine, without Spark."""
    history = BuildHistory(app.project, offline_lake(app), app.journal, app.project.jobs[job])
    return AddedBefore(history, looks_far=False)


def _to_be_emptied(taints: Iterable[Taint]) -> frozenset[tuple[str, Key]]:
    """Return the targets and instances that a build would leave wrong, as it leaves rows of before."""
    return frozenset(instance_of(each) for each in taints if each.kept is not None)


def _appends_to_build(app: App, job: str, taints: Sequence[Taint]) -> frozenset[tuple[str, Key]]:
    """Return the targets of a job that add rows, in the instances that other commands build."""
    declared = app.project.jobs[job]
    names = {each.place.target for each in taints}.intersection(declared.targets)
    adding = appends_of(app, declared, names)
    return frozenset(instance_of(each) for each in taints if each.place.target in adding)


def instance_of(taint: Taint) -> tuple[str, Key]:
    """Return the target and the instance that a taint is about."""
    return taint.place.target, tuple(sorted(taint.place.parameters.items()))


def _is_unknown(instance: Key) -> bool:
    """Return whether a taint is of an instance that nobody knows, so that it holds for any."""
    return bool(instance) and all(text == HIDDEN for _, text in instance)


def _adding_once(
    before: AddedBefore,
    instances: Iterable[Sequence[tuple[str, str]]],
    kept: Collection[tuple[str, Key]],
) -> tuple[str, ...] | None:
    few = list(islice(instances, MOST_TYPED))
    hidden = [tuple(sorted(before.journal.hide_secrets(dict(each)).items())) for each in few]
    try:
        added = frozenset().union(*(before.targets(dict(each)) for each in few))
        added |= {
            name
            for name, instance in kept
            if name in before.job.targets and (instance in hidden or _is_unknown(instance))
        }
        names = before.job.target_names(before.project.job_scope(before.job))
    except LakewrightError:  # a wrong definition is told by itself
        return None
    if not added.intersection(names):
        return None
    return tuple(name for name in names if name not in added)
