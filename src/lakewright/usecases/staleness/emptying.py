"""The commands that empty what tainted targets write, and then build all that was there, in order."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

from lakewright.errors.phrase import Command
from lakewright.manifest.journal import TargetPhase
from lakewright.plan.graph import Graph, sources_of
from lakewright.plan.other_runs import OtherRun, commands_of, run_of
from lakewright.plan.phase import Phase
from lakewright.usecases.staleness.declared_nodes import graph_across_jobs, nodes_of_job
from lakewright.usecases.staleness.emptied import kept_rows_of, places_of, writers_of

if TYPE_CHECKING:
    from lakewright.app import App
    from lakewright.manifest.journal import Taint
    from lakewright.plan.graph import Node
    from lakewright.spec.models.job import Job

__all__ = ["building_commands", "emptying_commands"]

_Runs = tuple[OtherRun, ...]


@dataclass(frozen=True, slots=True)
class _Build:
    """A target that is to be built in instances of a job.

    Attributes:
        is_dirty: Whether it is built although it may be clean in some of them.
        is_emptied: Whether it is one of those that are emptied, or built with them.
    """

    job: str
    target: str
    runs: _Runs
    is_dirty: bool = False
    is_emptied: bool = False


def emptying_commands(app: App, job: Job, taints: Sequence[Taint]) -> tuple[Command, ...]:
    """Return the commands that empty what tainted targets of a job write, and then build all that was there.

    Args:
        app: The project.
        job: A job that builds them.
        taints: The taints of the job's targets; those that keep rows are emptied.
    """
    kept = [each.place for each in taints if each.kept is not None]
    names = sorted({place.target for place in kept})
    others = _others(app, job, kept)
    emptied = []
    for name in names:
        tainted = {run_of(job.name, place.parameters) for place in kept if place.target == name}
        every = {*tainted, *others.pop((job.name, name), ())}
        emptied.append(_Build(job.name, name, _ordered(every), bool(every - tainted), is_emptied=True))
    groups = dict.fromkeys(each.runs for each in emptied)
    first = [
        command
        for runs in groups
        for command in commands_of(
            runs,
            phase=Phase.TRUNCATE,
            options=[text for each in emptied if each.runs == runs for text in ("-t", each.target)],
        )
    ]
    further = _further(app, job, taints, emptied)
    is_whole = len(groups) == 1 and all(each.is_emptied for each in further)
    if is_whole and not _has_other_appends(app, job, names):
        (runs,) = groups
        options = [f"--dirty={each.target}" for each in emptied if each.is_dirty]
        first += commands_of(runs, options=options)
        # What a run of the job finds empty, it builds.
        others = {key: found for key, found in others.items() if key[0] != job.name or set(found) - {*runs}}
        builds = []
    else:
        places = {runs: place for place, runs in enumerate(groups)}
        builds = sorted((*emptied, *further), key=lambda each: places.get(each.runs, len(places)))
    # What else was there, with nothing that was not: a target that adds rows elsewhere would add them again.
    known = {(each.job, each.target) for each in (*emptied, *further)}
    builds += [
        _Build(*key, _ordered(found))
        for key, found in sorted(others.items(), key=lambda each: (each[0][0] != job.name, each[0]))
        if key not in known
    ]
    graph = _graph(app, builds)
    # What is built with all that it reads must not build what is emptied in other instances, or adds rows.
    is_alone = len(groups) > 1 or _reads_appends(app, job, graph, names)
    return (*first, *_commands(_in_order(graph, builds), "" if is_alone else "+"))


def building_commands(app: App, job: Job, runs: Mapping[str, Collection[OtherRun]]) -> tuple[Command, ...]:
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
    return _commands([_Build(job.name, name, _ordered(own)) for name, own in runs.items()])


def _commands(builds: Iterable[_Build], before: str = "") -> tuple[Command, ...]:
    """Return the commands of builds in their order: one for those beside each other with the same runs.

    Args:
        builds: The builds.
        before: What stands before the names of those that are emptied.
    """
    groups = [[*alike] for _, alike in groupby(builds, key=lambda e: (e.job, e.runs, e.is_emptied))]
    # With what they read, a second command would build those of the first once more.
    is_single = sum(group[0].is_emptied for group in groups) == 1
    found: list[Command] = []
    for together in groups:
        runs, is_emptied = together[0].runs, together[0].is_emptied
        options = [f"--dirty={each.target}" for each in together if each.is_dirty]
        prefix = before if is_emptied and is_single else ""
        options += [text for each in together for text in ("-t", f"{prefix}{each.target}")]
        found += commands_of(runs, options=options)
    return tuple(found)


def _reads_appends(app: App, job: Job, graph: Graph, names: Collection[str]) -> bool:
    """Return whether one of the emptied targets reads, directly or not, another one that adds rows."""
    read = {each for name in names for each in sources_of(name, graph.sources)} - set(names)
    return bool(kept_rows_of(app, job, sorted(read)))


def _in_order(graph: Graph, builds: Sequence[_Build]) -> list[_Build]:
    """Return builds so that each comes after those that it reads, and otherwise as they are."""
    order = {name: place for place, name in enumerate(graph.order)}
    return sorted(builds, key=lambda each: order.get(each.target, len(order)))


def _graph(app: App, builds: Sequence[_Build]) -> Graph:
    """Return the graph of the targets of the jobs of builds; those that are built come first, as they are."""
    nodes: dict[str, Node] = {}
    for name in dict.fromkeys(each.job for each in builds):
        # Those that are not built may stand between two that are.
        nodes = {each.name: each for each in nodes_of_job(app, name)} | nodes
    names = (*(each.target for each in builds), *nodes)
    return graph_across_jobs([nodes[name] for name in dict.fromkeys(names) if name in nodes])


def _further(app: App, job: Job, taints: Sequence[Taint], emptied: Sequence[_Build]) -> list[_Build]:
    """Return what else is to be built: in the same instances with what is emptied, and otherwise alone.

    Those that add rows are built in their own instances alone.
    """
    names = sorted({each.place.target for each in taints} - {each.target for each in emptied})
    adding = kept_rows_of(app, job, names)
    found = []
    for name in names:
        own = _runs(job, taints, name)
        shared = None if name in adding else next((e.runs for e in emptied if set(own) <= set(e.runs)), None)
        found.append(_Build(job.name, name, shared or own, is_emptied=shared is not None))
    return found


def _runs(job: Job, taints: Iterable[Taint], target: str) -> _Runs:
    return _ordered(run_of(job.name, each.place.parameters) for each in taints if each.place.target == target)


def _ordered(runs: Iterable[OtherRun]) -> _Runs:
    return tuple(sorted(set(runs), key=lambda run: run.parameters))


def _has_other_appends(app: App, job: Job, names: Collection[str]) -> bool:
    targets = job.target_names(app.project.job_scope(job))
    return bool(kept_rows_of(app, job, targets).keys() - set(names))


def _others(app: App, job: Job, places: Sequence[TargetPhase]) -> dict[tuple[str, str], list[OtherRun]]:
    """Return the runs that build what else is in the places that are emptied, as the history tells it.

    They are listed by job and target. A target that the job has, too, is built by its runs.
    """
    emptied = {each for place in places for each in places_of(app, job, place.target, place.parameters)}
    found: dict[tuple[str, str], list[OtherRun]] = {}
    for other, name, parameters in writers_of(app, emptied):
        is_of_job = name in job.targets and parameters.keys() == {each.name for each in job.parameters}
        run = run_of(job.name if is_of_job else other.name, parameters)
        found.setdefault((run.job, name), []).append(run)
    return found
