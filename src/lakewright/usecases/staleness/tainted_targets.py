"""Targets that were built from tables which have changed since, as far as the manifest remembers it.

Targets that read a table are tainted when it is undone, built again, or when a slice is processed into it a
second time; those that a run left undone are tainted too. They stay so until a run builds them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from lakewright.errors import LakewrightError
from lakewright.errors.phrase import Command
from lakewright.manifest.journal import Origin
from lakewright.plan.graph import Graph, Node, sources_of
from lakewright.plan.other_runs import OtherRun, run_of
from lakewright.plan.phase import Phase
from lakewright.run.outputs import target_of
from lakewright.usecases.staleness.declared_nodes import graph_across_jobs, nodes_of_job, offline_lake
from lakewright.usecases.staleness.earlier_builds import former_names
from lakewright.usecases.staleness.emptied import as_it_stands
from lakewright.usecases.staleness.emptying import building_commands, emptying_commands
from lakewright.usecases.staleness.repeated_appends import added_before, instance_of

if TYPE_CHECKING:
    from lakewright.app import App
    from lakewright.manifest.journal import Taint
    from lakewright.run.added_before import AddedBefore
    from lakewright.run.build_history import Key
    from lakewright.spec.models.job import Job

__all__ = ["TaintedTarget", "brought_back", "tainted_targets"]

_Subject: TypeAlias = tuple[str, str, str]
"""A target, why it is dirty, and what to do if no job builds it."""

_UNBUILT = "no job builds it: add it to one, or remove the target"


@dataclass(frozen=True, slots=True)
class TaintedTarget:
    """A target that is dirty until it is built again.

    Attributes:
        reason: Why.
        instances: The parameters of the instances in which it is dirty.
        commands: The commands that build it again, in order.
        advice: What to do if no job builds it; empty if one does.
        is_emptied: Whether the first command empties what it writes, as a build leaves rows of before.
    """

    target: str
    reason: str
    instances: tuple[Mapping[str, str], ...]
    commands: tuple[Command, ...]
    advice: str = ""
    is_emptied: bool = False

    def as_json(self) -> dict[str, Any]:
        """Return the object that `status -o json` prints."""
        return {
            "target": self.target,
            "reason": self.reason,
            "instances": [dict(each) for each in self.instances],
            "do": list(self.commands),
            "advice": self.advice or None,
        }


def tainted_targets(
    app: App,
    told: Collection[str] = (),
    running: Collection[str] = (),
    left: Collection[tuple[str, Key]] = (),
) -> Iterator[TaintedTarget]:
    """Yield the targets that are dirty until they are built again, each with its reasons.

    What others read comes first, so that their commands can be typed in order. Targets of a job that share
    instances stand together with the same commands, which build them all.

    Left out are those that are not declared any more, and instances whose parameters the target's jobs do not
    have any more.

    Args:
        app: The project.
        told: Ids of runs that are told of by themselves, as they have failed: what these have left undone is
            left out, unless what it writes must be emptied before.
        running: Ids of runs that go on: what these have begun is left out.
        left: The targets and instances that such failed runs build once they are resumed: these are left out
            as well, as two builds might add their rows twice.
    """
    begun = [each for each in former_names(app).taints() if each.run_id not in running]
    jobs = list(_targets_of_jobs(app)) if begun else []
    known: dict[str, AddedBefore] = {}
    dirty = [
        each
        for each in (_as_it_stands(app, one) for one in _buildable(app, begun, jobs))
        if (each.taint.kept is not None or not (each.taint.run_id in told or instance_of(each.taint) in left))
        and not (each.taint.lost_in is not None and _is_back(app, known, each))
        and not _is_meant(app, each)
    ]
    by_job: dict[str, list[Taint]] = {}
    for each in dirty:
        by_job.setdefault("" if each.run is None else each.run.job, []).append(each.taint)
    # What keeps rows is emptied with the others of its job: building these would build it, too.
    emptying = {
        job: emptying_commands(app, app.project.job(job), of_job)
        for job, of_job in by_job.items()
        if job and any(each.kept is not None for each in of_job)
    }
    graph = _graph(app, {job: {each.place.target for each in of_job} for job, of_job in by_job.items()})
    for group in _merged(_lines(dirty, graph), graph):
        jobs_in_order = dict.fromkeys(run.job for each in group for run in each.runs if run is not None)
        commands = tuple(
            typed
            for job in jobs_in_order
            for typed in emptying.get(job) or building_commands(app, app.project.job(job), _runs(group, job))
        )
        is_emptied = any(job in emptying for job in jobs_in_order)
        for (target, reason, advice), ordered in ((each.subject, each.instances) for each in group):
            instances = tuple(map(dict, ordered))
            yield TaintedTarget(target, reason, instances, commands, advice, is_emptied)


def brought_back(app: App) -> tuple[Taint, ...]:
    """Return the taints of rows that a run has removed and that are there again."""
    found = [each for each in former_names(app).taints() if each.lost_in is not None]
    jobs = list(_targets_of_jobs(app)) if found else []
    known: dict[str, AddedBefore] = {}
    return tuple(each for each in found if _is_back(app, known, _Dirty(each, _run(each, jobs))))


@dataclass(frozen=True, slots=True)
class _Dirty:
    """A taint, and the run that builds its target in its instance; None if no job does."""

    taint: Taint
    run: OtherRun | None

    @property
    def subject(self) -> _Subject:
        """What a line says of it."""
        advice = "" if self.run is not None else _UNBUILT
        kept = self.taint.kept
        return self.taint.place.target, self.taint.reason if kept is None else kept.why, advice


@dataclass(frozen=True, slots=True)
class _Line:
    """A target with a reason, and the run of each of its instances; None if no job builds it."""

    subject: _Subject
    instances: tuple[Key, ...]
    runs: tuple[OtherRun | None, ...]

    @property
    def target(self) -> str:
        """The name of the target."""
        return self.subject[0]

    @property
    def jobs(self) -> frozenset[str]:
        """The jobs that build it."""
        return frozenset(run.job for run in self.runs if run is not None)


def _lines(dirty: Collection[_Dirty], graph: Graph) -> list[_Line]:
    """Return a line for each target and reason, with its instances; what others read comes first."""
    found: dict[_Subject, dict[Key, OtherRun | None]] = {}
    for each in dirty:
        found.setdefault(each.subject, {})[tuple(each.taint.place.parameters.items())] = each.run
    order = {name: position for position, name in enumerate(graph.order)}
    return [
        _Line(subject, tuple(sorted(by_instance)), tuple(by_instance[each] for each in sorted(by_instance)))
        for subject, by_instance in sorted(
            found.items(), key=lambda each: (order.get(each[0][0], len(order)), each[0])
        )
    ]


def _merged(lines: Sequence[_Line], graph: Graph) -> Iterator[list[_Line]]:
    """Yield lines in groups whose instances one command builds: those of a job that share instances.

    A line stays where it is if it reads what a line before it builds, and that is not built by the same
    command.
    """
    groups: list[list[_Line]] = []
    for line in lines:
        before = sources_of(line.target, graph.sources)
        found = next((each for each in groups if _is_shared(each, line)), None)
        between = [] if found is None else groups[groups.index(found) + 1 :]
        if found is None or any(each.target in before for group in between for each in group):
            groups.append([line])
        else:
            found.append(line)
    yield from groups


def _runs(group: Sequence[_Line], job: str) -> Mapping[str, list[OtherRun]]:
    """Return the targets of lines, in their order, with their runs of a job."""
    found: dict[str, list[OtherRun]] = {}
    for line in group:
        own = (run for run in line.runs if run is not None and run.job == job)
        found.setdefault(line.target, []).extend(own)
    return {name: sorted(set(own), key=lambda run: run.parameters) for name, own in found.items() if own}


def _is_shared(group: Sequence[_Line], line: _Line) -> bool:
    is_of_job = len(line.jobs) == 1 and all(each.jobs == line.jobs for each in group)
    return is_of_job and any(set(each.runs) & set(line.runs) for each in group)


def _graph(app: App, by_job: Mapping[str, Collection[str]]) -> Graph:
    """Return the graph of targets: what reads the output of others comes after these, in any job."""
    nodes: dict[str, Node] = {}
    for name, targets in by_job.items():
        if name:
            nodes |= {each.name: each for each in nodes_of_job(app, name, targets)}
    return graph_across_jobs([nodes[name] for name in sorted(nodes)])


def _targets_of_jobs(app: App) -> Iterator[tuple[Job, frozenset[str]]]:
    for job in app.project.jobs.values():
        try:
            yield job, frozenset(job.target_names(app.project.job_scope(job)))
        except LakewrightError:  # a name that only an instance knows
            yield job, frozenset(job.targets)


def _buildable(
    app: App, taints: Collection[Taint], jobs: Collection[tuple[Job, frozenset[str]]]
) -> Iterator[_Dirty]:
    """Yield the taints of targets that are declared, and built in their instance or by no job at all."""
    for taint in taints:
        place = taint.place
        declared = app.project.targets.get(place.target)
        if place.phase != Phase.BUILD.value or declared is None or declared.kind == "entity":
            continue
        run = _run(taint, jobs)
        if run is not None or not any(place.target in targets for _, targets in jobs):
            yield _Dirty(taint, run)


def _as_it_stands(app: App, dirty: _Dirty) -> _Dirty:
    if dirty.taint.kept is None or dirty.run is None:
        return dirty
    return replace(dirty, taint=as_it_stands(app, app.project.job(dirty.run.job), dirty.taint))


def _is_meant(app: App, dirty: _Dirty) -> bool:
    """Return whether rows that came more than once are meant to, as the target is declared by now."""
    kept = dirty.taint.kept
    if dirty.run is None or kept is None or kept.origin is not Origin.TWICE:
        return False
    job, place = app.project.job(dirty.run.job), dirty.taint.place
    made = target_of(app.project, offline_lake(app), job, place.target, place.parameters)
    return made is not None and made[0].is_built_always


def _is_back(app: App, known: dict[str, AddedBefore], dirty: _Dirty) -> bool:
    """Return whether the rows that a run has removed are there again, as far as this machine tells it."""
    if dirty.run is None:
        return False
    job, place = app.project.job(dirty.run.job), dirty.taint.place
    if job.name not in known:
        known[job.name] = added_before(app, job.name)
    added = known[job.name]
    made = target_of(app.project, added.lake, job, place.target, place.parameters)
    return made is not None and added.is_back(dirty.taint, *made)


def _run(taint: Taint, jobs: Collection[tuple[Job, frozenset[str]]]) -> OtherRun | None:
    """Return the run of the first job that builds a tainted target in its instance; None if no job does."""
    place = taint.place
    for job, targets in jobs:
        if place.target in targets and place.parameters.keys() == {each.name for each in job.parameters}:
            return run_of(job.name, place.parameters)
    return None
