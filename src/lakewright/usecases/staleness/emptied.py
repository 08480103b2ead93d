"""Targets whose output must be emptied before they are built again, and what is written in one place.

A target that merges, updates or appends leaves rows that it wrote before a slice was undone. Emptying its
output takes out the rows of all instances that wrote there, and those of other targets.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from lakewright.errors import LakewrightError
from lakewright.manifest.journal import TargetPhase
from lakewright.manifest.store import Write
from lakewright.plan.phase import Phase
from lakewright.run.outputs import written_by
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
    "appends_of",
    "forget_emptied",
    "kept_rows_of",
    "places_of",
    "writers_of",
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
    return appends_of(app, job, names) if job.parameters else {}


def appends_of(app: App, job: Job, names: Iterable[str]) -> Mapping[str, str]:
    """Return what the builds of targets that append do, by name; others are left out."""

    def told(target: Target, workspace: Workspace, defaults: TargetDefaults) -> str | None:
        append = target.append(workspace, defaults)
        return None if append is None else append.words

    return _told_of(app, job, names, told)


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


def places_of(
    app: App, job: Job, target: str, parameters: Mapping[str, str], phase: Phase = Phase.BUILD
) -> frozenset[Resource]:
    """Return the places that a target of a job writes in an instance and a phase."""
    return written_by(app.project, offline_lake(app), job, target, parameters, phase=phase)


def writers_of(app: App, places: Iterable[Resource]) -> Iterator[tuple[Job, str, Mapping[str, str]]]:
    """Yield the instances of targets that were built into places, each with a job that did it."""
    emptied, seen = tuple(places), set()
    for job in app.project.jobs.values() if emptied else ():
        for name, parameters in (*built_instances(app, job, RUNS), *unrecorded_instances(app, job)):
            key = (name, tuple(sorted(parameters.items())))
            if key in seen:
                continue
            seen.add(key)
            written = places_of(app, job, name, parameters)
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
                for _, name, parameters in writers_of(app, emptied)
                if app.project.targets[name].kind != "entity"  # whose slices wait
            )
            reason = f"its rows were removed by {run.phase.value} in run {run.run_id}"
            former = [each.place for each in found if each.is_built]  # their rows are gone
            lost = [*former, *(place for place in gone if place.key not in known)]
            puts = (place.tainted(reason, lost_in=run.run_id) for place in lost)
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
                    yield from places_of(app, job, each.name, instance.parameters, phase.phase)


def _is_within(app: App, taint: Taint, emptied: frozenset[Resource]) -> bool:
    for job in app.project.jobs.values():
        if taint.place.target in job.targets:
            written = places_of(app, job, taint.place.target, taint.place.parameters)
            if written and all(any(one.contains(each) for one in emptied) for each in written):
                return True
    return False
