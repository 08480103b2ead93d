"""Targets whose output must be emptied before they are built again, and what must be built then.

A target that merges, updates or appends leaves rows that it wrote before a slice was undone. Emptying its
output takes out the rows of all instances that wrote there, and those of other targets.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from lakewright.errors import LakewrightError
from lakewright.manifest.journal import TargetPhase
from lakewright.manifest.store import Write
from lakewright.plan.other_runs import OtherRun, commands_of, run_of
from lakewright.plan.phase import Phase
from lakewright.run.outputs import is_gone, written_by
from lakewright.targets.defaults import TargetDefaults
from lakewright.targets.target import Target
from lakewright.usecases.staleness.declared_nodes import offline_lake, sample_workspace
from lakewright.usecases.staleness.earlier_builds import built_instances
from lakewright.usecases.staleness.left_partitions import unrecorded_instances

if TYPE_CHECKING:
    from lakewright.app import App
    from lakewright.manifest.journal import Taint
    from lakewright.plan.resource import Resource
    from lakewright.run.result import RunResult
    from lakewright.spec.models.job import Job
    from lakewright.workspace.workspace import Workspace

__all__ = [
    "added_rows_of",
    "as_it_stands",
    "building_commands",
    "emptying_commands",
    "forget_emptied",
    "kept_rows_of",
]

log = logging.getLogger(__name__)

RUNS = 1000
"""Number of a job's last runs in which the instances are looked for whose rows are emptied, too."""

_CLEANUP = (Phase.TRUNCATE, Phase.DESTROY)


def kept_rows_of(app: App, job: Job, names: Iterable[str]) -> Mapping[str, str]:
    """Return why builds of targets leave rows of before, by name; those that replace them are left out."""
    return _told_of(app, job, names, lambda target, _, defaults: target.kept_rows(defaults))


def added_rows_of(app: App, job: Job, names: Iterable[str]) -> Mapping[str, str]:
    """Return why builds of instances of targets add rows once more, by name; others are left out.

    A job without parameters adds rows in each of its runs, as that is all that it can do.
    """

    def told(target: Target, workspace: Workspace, defaults: TargetDefaults) -> str | None:
        append = target.append(workspace, defaults)
        return None if append is None else append.words

    return _told_of(app, job, names, told) if job.parameters else {}


def _told_of(
    app: App,
    job: Job,
    names: Iterable[str],
    told: Callable[[Target, Workspace, TargetDefaults], str | None],
) -> dict[str, str]:
    found = {}
    defaults = TargetDefaults.of(app.project.config)
    workspace = sample_workspace(app.project, job, offline_lake(app))
    for name in names:
        try:
            text = told(Target.named(workspace, name), workspace, defaults)
        except LakewrightError:  # a definition is wrong, which is told by itself
            continue
        if text is not None:
            found[name] = text
    return found


def _written_by(
    app: App, job: Job, target: str, parameters: Mapping[str, str], phase: Phase = Phase.BUILD
) -> frozenset[Resource]:
    return written_by(app.project, offline_lake(app), job, target, parameters, phase=phase)


def as_it_stands(app: App, job: Job, taint: Taint) -> Taint:
    """Return a taint without the rows that a build would leave, if what the target writes does not exist."""
    place = taint.place
    if taint.kept is None or not is_gone(_written_by(app, job, place.target, place.parameters)):
        return taint
    return replace(taint, kept=None)


def emptying_commands(app: App, job: Job, taints: Sequence[Taint]) -> tuple[str, ...]:
    """Return the commands that empty what tainted targets of a job write, and then build all that was there.

    Args:
        app: The project.
        job: A job that builds them.
        taints: The taints of the job's targets; those that keep rows are emptied.
    """
    kept = [each.place for each in taints if each.kept is not None]
    names = sorted({place.target for place in kept})
    apart = _adding_apart(app, job, taints, names)
    others = _others(app, job, kept)
    groups: dict[tuple[OtherRun, ...], list[str]] = {}
    is_dirty: set[str] = set()
    for name in names:
        tainted = [run_of(job.name, place.parameters) for place in kept if place.target == name]
        every = {*tainted, *others.pop((job.name, name), ())}
        groups.setdefault(tuple(sorted(every, key=lambda run: run.parameters)), []).append(name)
        is_dirty |= {name} if every - set(tainted) else set()
    emptied = (
        command
        for runs, of_runs in groups.items()
        for command in commands_of(
            runs, phase=Phase.TRUNCATE, options=[text for name in of_runs for text in ("-t", name)]
        )
    )
    # What else is to be built: in the same instances with these, and otherwise alone.
    further = {each.place.target for each in taints} - set(names) - set(apart)
    alone = {name: _runs(job, taints, name) for name in sorted(apart)}
    members = {runs: list(of_runs) for runs, of_runs in groups.items()}
    for name in sorted(further):
        of_name = _runs(job, taints, name)
        found = next((runs for runs in groups if set(of_name) <= set(runs)), None)
        if found is None:
            alone[name] = of_name
        else:
            members[found].append(name)
    is_chosen = len(groups) > 1 or bool(further & alone.keys()) or _has_other_appends(app, job, names)
    built: list[str] = []
    for runs, of_runs in members.items():
        options = [f"--dirty={name}" for name in of_runs if name in is_dirty]
        if is_chosen:
            # The job's other targets that add rows must not add theirs once more, nor in other instances.
            before = "" if len(groups) > 1 else "+"
            options += [text for name in sorted(of_runs) for text in ("-t", f"{before}{name}")]
        built += commands_of(runs, options=options)
    if not is_chosen:  # what a run of the job finds empty, it builds
        whole = {run for runs in groups for run in runs}
        others = {key: runs for key, runs in others.items() if key[0] != job.name or set(runs) - whole}
    # What else was there, with nothing that was not: a target that adds rows elsewhere would add them again.
    known = {*alone, *further}
    by_job: dict[str, dict[str, list[OtherRun]]] = {}
    for (of_job, name), of_other in others.items():
        if of_job != job.name or name not in known:
            by_job.setdefault(of_job, {})[name] = sorted(of_other, key=lambda run: run.parameters)
    return (
        *emptied,
        *built,
        *building_commands(app, job, {**by_job.pop(job.name, {}), **alone}),
        *(
            command
            for name in sorted(by_job)
            for command in building_commands(app, app.project.job(name), by_job[name])
        ),
    )


def building_commands(app: App, job: Job, runs: Mapping[str, Collection[OtherRun]]) -> tuple[str, ...]:
    """Return the commands that build targets of a job, each in its own instances, in order.

    In another instance, a target that adds rows would add them once more. If none would, each run takes its
    new slices, too, as it does every day.

    Args:
        app: The project.
        job: The job.
        runs: Names of the targets, in the order in which they are built, with their instances.
    """
    every = dict.fromkeys(run for each in runs.values() for run in each)
    kept = kept_rows_of(app, job, job.target_names(app.project.job_scope(job)))
    if all(set(runs.get(name, ())) == set(every) for name in kept):
        return commands_of(every)
    alike: list[tuple[list[str], Collection[OtherRun]]] = []
    for name, own in runs.items():
        if alike and set(alike[-1][1]) == set(own):
            alike[-1][0].append(name)
        else:
            alike.append(([name], own))
    return tuple(
        command
        for names, own in alike
        for command in commands_of(own, options=[text for name in names for text in ("-t", name)])
    )


def _adding_apart(app: App, job: Job, taints: Sequence[Taint], emptied: Collection[str]) -> Collection[str]:
    """Return the targets that add rows and are not emptied: they are built in their own instances alone."""
    names = {each.place.target for each in taints} - set(emptied)
    return kept_rows_of(app, job, sorted(names)).keys()


def _runs(job: Job, taints: Iterable[Taint], target: str) -> list[OtherRun]:
    found = (run_of(job.name, each.place.parameters) for each in taints if each.place.target == target)
    return sorted(found, key=lambda run: run.parameters)


def _has_other_appends(app: App, job: Job, names: Collection[str]) -> bool:
    targets = job.target_names(app.project.job_scope(job))
    return bool(kept_rows_of(app, job, targets).keys() - set(names))


def _others(app: App, job: Job, places: Sequence[TargetPhase]) -> dict[tuple[str, str], dict[OtherRun, None]]:
    """Return the runs that build what else is in the places that are emptied, as the history tells it.

    They are listed by job and target. A target that the job has, too, is built by its runs.
    """
    emptied = {each for place in places for each in _written_by(app, job, place.target, place.parameters)}
    found: dict[tuple[str, str], dict[OtherRun, None]] = {}
    for other, name, parameters in _writers(app, emptied):
        is_of_job = name in job.targets and parameters.keys() == {each.name for each in job.parameters}
        run = run_of(job.name if is_of_job else other.name, parameters)
        found.setdefault((run.job, name), {})[run] = None
    return found


def _writers(app: App, places: Iterable[Resource]) -> Iterator[tuple[Job, str, Mapping[str, str]]]:
    """Yield the instances of targets that were built into places, each with a job that did it."""
    emptied, seen = tuple(places), set()
    for job in app.project.jobs.values() if emptied else ():
        for name, parameters in (*built_instances(app, job, RUNS), *unrecorded_instances(app, job)):
            key = (name, tuple(sorted(parameters.items())))
            if key in seen:
                continue
            seen.add(key)
            written = _written_by(app, job, name, parameters)
            if any(each.intersects(place) for each in written for place in emptied):
                yield job, name, parameters


def forget_emptied(app: App, before: Iterable[Taint], run: RunResult) -> None:
    """Record that a run has emptied what tainted targets write, so that building them again is enough.

    What else was written there is tainted, as its rows are gone.

    Args:
        app: The project.
        before: The taints from before the run.
        run: The run.
    """
    kept = [each for each in before if each.kept is not None or each.append_id is not None]
    try:
        emptied = frozenset(_emptied(app, run)) if kept else frozenset()
        found = [each for each in kept if _is_within(app, each, emptied)]
        if found:
            known = {each.place.key for each in before}
            gone = (
                TargetPhase(app.project.name, name, Phase.BUILD.value, parameters)
                for _, name, parameters in _writers(app, emptied)
            )
            reason = f"its rows were removed by {run.phase.value} in run {run.run_id}"
            puts = (place.tainted(reason, lost_in=run.run_id) for place in gone if place.key not in known)
            app.store.write(Write(puts=(*(each.emptied for each in found), *puts)))
    except LakewrightError as error:  # the commands are told once more, which does no harm
        log.warning("targets that were emptied could not be marked as such: %s", error)


def _emptied(app: App, run: RunResult) -> Iterator[Resource]:
    """Yield the places that a run has emptied, or found empty."""
    job = app.project.job(run.job)
    for instance in run.instances:
        for phase in instance.phases:
            for each in phase.targets if phase.phase in _CLEANUP else ():
                if not each.is_undone:
                    # A table is removed as a whole, whichever part of it the instance builds.
                    yield from _written_by(app, job, each.name, instance.parameters, phase.phase)


def _is_within(app: App, taint: Taint, emptied: frozenset[Resource]) -> bool:
    for job in app.project.jobs.values():
        if taint.place.target in job.targets:
            written = _written_by(app, job, taint.place.target, taint.place.parameters)
            if written and all(any(one.contains(each) for one in emptied) for each in written):
                return True
    return False
