"""Which failed runs are listed: those whose work nobody has done since."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

from lakewright.errors import LakewrightError
from lakewright.manifest.journal import ACCEPTED, Journal, Run
from lakewright.plan.phase import Phase, phases_until
from lakewright.plan.status import Status
from lakewright.run.leftovers import is_entry_undone
from lakewright.slices.discover import natural_key
from lakewright.spec.arguments import expand_arguments
from lakewright.spec.expressions.secrets import HIDDEN
from lakewright.spec.expressions.values import render_value
from lakewright.usecases.failed_runs.work_elsewhere import Step, WorkElsewhere, is_rebuilt_otherwise

if TYPE_CHECKING:
    from lakewright.app import App
    from lakewright.spec.project import Project

__all__ = [
    "alike_runs",
    "builds_left",
    "covers",
    "given_instances",
    "has_steps",
    "hidden_parameters",
    "is_failed",
    "is_left",
    "is_of_former_job",
    "is_superseded",
    "recorded_phases",
    "runs_to_resume",
    "undone_runs",
    "with_resumed",
]

HasRun: TypeAlias = Callable[[str, str], bool]
"""Returns whether a run, given by its id, ran a phase."""

RECENT = 200
"""The number of latest runs among which a run is looked for."""

_LEFT_WORK = (Status.FAILED, Status.ABORTED)

_Instance: TypeAlias = tuple[tuple[str, str], ...]

_Instances: TypeAlias = Callable[[Run], frozenset[_Instance]]
"""Returns the instances of a run, as far as its arguments tell them."""


@dataclass(frozen=True, slots=True)
class _Results:
    """The recorded steps of a run.

    Attributes:
        done: Those that it did, or found done.
        undone: Those that it left undone.
        is_held_up: Whether none of these failed: others held what they needed, or they were not reached.
    """

    done: frozenset[Step]
    undone: frozenset[Step]
    is_held_up: bool

    @property
    def instances(self) -> frozenset[_Instance]:
        """The instances of which nothing was left undone."""
        return frozenset(step[0] for step in self.done) - {step[0] for step in self.undone}


def undone_runs(
    journal: Journal,
    newest_first: Sequence[Run],
    instances: _Instances,
    elsewhere: WorkElsewhere | None = None,
) -> Iterator[Run]:
    """Yield the failed runs whose work nobody has done since.

    A later run with the same parameters stands for a failed one, however it ended, unless it was of fewer
    targets or phases, or began before the failed one had ended. So does one that failed in more instances.
    Such runs, and those with other parameters, have done its work once each step that it left undone has
    succeeded, or its instance as a whole. A run that was killed did not record what it left undone: its
    instances must have succeeded as a whole. If others held a run up, so that no step of it failed, runs that
    went on before and after it count too.

    A step is done, too, once a later run of another job has done it for the same target and instance, or its
    slices were processed since, as `elsewhere` tells.

    A run that only compares, such as `rebuild --check`, does not do the work of one that writes. If it fails,
    or a rewind is refused before it begins, nothing is left undone.
    """
    has_run = recorded_phases(journal)

    @cache
    def results(run_id: str) -> _Results:
        return _results(journal.targets(run_id))

    seen: dict[tuple[str, str], list[Run]] = {}
    for position, run in enumerate(newest_first):
        later = seen.setdefault((run.project, run.job), [])
        is_idle = any(run.facts.get(each) for each in ("check", "refused", ACCEPTED))
        if run.status in _LEFT_WORK and not is_idle:
            same = (each for each in later if _follows(each, run, instances) and has_steps(each, run))
            since = [*later, *_holders(run, newest_first, results)]
            if any(covers(each, run, has_run) for each in same):
                pass
            elif run.finished is None:
                if not _is_done_whole(instances(run), run, since, results, has_run):
                    yield run
            else:
                left = _left(run, since, results, has_run)
                left = _left_elsewhere(run, left, newest_first[:position], results, elsewhere)
                if left or not results(run.run_id).undone:
                    yield run
        later.append(run)


def runs_to_resume(app: App, newest_first: Sequence[Run]) -> tuple[Run, ...]:
    """Return the failed runs whose work no later run has done, of jobs that can still be run, in order.

    The first one began first. Those of a job are in the order of their instances: to run a later day first
    would make the slices of an earlier one late.

    What others left undone is told with the targets, as far as these are still declared. A rebuild is left
    out once nothing is left of what it was to do.
    """
    instances = given_instances(app.project)
    found = undone_runs(app.journal, newest_first, instances, WorkElsewhere(app))
    left = (run for run in found if not is_of_former_job(app.project, run))
    return _in_order([run for run in left if not is_rebuilt_otherwise(app, run, newest_first)])


def _in_order(runs: Sequence[Run]) -> tuple[Run, ...]:
    by_job: dict[tuple[str, str], list[Run]] = {}
    oldest_first = sorted(runs, key=lambda run: run.started)
    for run in oldest_first:
        by_job.setdefault((run.project, run.job), []).append(run)
    of_job = {
        job: iter(sorted(each, key=lambda run: [natural_key(str(text)) for text in run.parameters.values()]))
        for job, each in by_job.items()
    }
    return tuple(next(of_job[run.project, run.job]) for run in oldest_first)


def builds_left(app: App, runs: Iterable[Run]) -> frozenset[tuple[str, _Instance]]:
    """Return the targets and instances that runs have left to build, which resuming them builds.

    Of a run that was killed, all that it has not recorded as built is left, as far as its arguments tell it.
    """
    found: set[tuple[str, _Instance]] = set()
    for run in runs:
        job = app.project.jobs.get(run.job)
        if job is None or run.phase not in Phase.__members__ or not _reaches_build(run):
            continue
        results = _results(app.journal.targets(run.run_id))
        found |= {(name, instance) for instance, phase, name in results.undone if phase == Phase.BUILD}
        if run.finished is None:
            names = _chosen(run, job.targets)
            done = {(name, instance) for instance, phase, name in results.done if phase == Phase.BUILD}
            given = given_instances(app.project)(run)
            found |= {(str(name), instance) for name in names for instance in given} - done
    return frozenset(found)


def _chosen(run: Run, targets: Collection[str]) -> Collection[str]:
    """Return the targets of a run; all of its job if they were chosen by labels, patterns or dependencies."""
    chosen = [str(each) for each in run.facts.get("targets") or ()]
    return chosen if chosen and set(chosen) <= set(targets) else targets


def _reaches_build(run: Run) -> bool:
    phase = Phase[run.phase]
    alone = bool(run.facts.get("no_lifecycle"))
    return phase is Phase.BUILD if alone else Phase.BUILD in phases_until(phase)


def is_superseded(app: App, run: Run) -> bool:
    """Return whether later runs stand for a failed run: they have done its work, or one is listed instead.

    False is returned for a run that is not among the latest ones.
    """
    return is_failed(run) and (bool(run.facts.get(ACCEPTED)) or not is_left(app, run))


def is_failed(run: Run) -> bool:
    """Return whether a run failed, or was interrupted or killed."""
    return run.status in _LEFT_WORK


def is_left(app: App, run: Run) -> bool:
    """Return whether later runs have not done the work of a failed run, although its failure may be accepted.

    True is returned for a run that is not among the latest ones.
    """
    runs = tuple(app.journal.runs(RECENT, project=run.project, since=run.started))
    if is_rebuilt_otherwise(app, run, runs):
        return False
    facts = {name: fact for name, fact in run.facts.items() if name != ACCEPTED}
    known = [replace(each, facts=facts) if each.run_id == run.run_id else each for each in runs]
    found = undone_runs(app.journal, known, given_instances(app.project), WorkElsewhere(app))
    return all(each.run_id != run.run_id for each in runs) or any(each.run_id == run.run_id for each in found)


def is_of_former_job(project: Project, run: Run) -> bool:
    """Return whether a run is of a job that a project without faults does not declare any more."""
    is_job = run.phase in Phase.__members__ and run.project == project.name
    return is_job and run.job not in project.jobs and not project.faults


def given_instances(project: Project) -> _Instances:
    """Return what tells the instances of a run by its arguments.

    None are told if it is not known what a value was when the run began: a default may be an expression, and
    secret values are not recorded.
    """

    def instances(run: Run) -> frozenset[_Instance]:
        job = project.jobs.get(run.job)
        given = {name.partition(":")[0] for name in run.parameters}
        if job is None or hidden_parameters(run) or given != {each.name for each in job.parameters}:
            return frozenset()
        try:
            found = expand_arguments(job.parameters, run.arguments, project.job_scope(job))
        except LakewrightError:  # the job's parameters have changed since
            return frozenset()
        return frozenset(
            tuple(sorted((name, render_value(value)) for name, value in values.items())) for values in found
        )

    return instances


def hidden_parameters(run: Run) -> tuple[str, ...]:
    """Return the names of a run's parameters whose values are secret and were not recorded."""
    return tuple(name for name, value in run.parameters.items() if HIDDEN in str(value))


def alike_runs(
    app: App,
    job: str,
    parameters: Mapping[str, Any],
    phase: str,
    *,
    project: str,
    targets: Sequence[str],
    is_alone: bool,
) -> Iterator[Run]:
    """Yield the last runs of a job with the same arguments, phase and targets, newest first."""
    for run in app.journal.runs(RECENT, project=project, job=job, parameters=parameters):
        is_of_phase = run.phase == phase and bool(run.facts.get("no_lifecycle")) == is_alone
        if is_of_phase and tuple(run.facts.get("targets") or ()) == tuple(targets):
            yield run


def with_resumed(newest_first: Iterable[Run]) -> Iterator[Run]:
    """Yield the first of some runs that are alike, and those which it has resumed."""
    for run in newest_first:
        yield run
        if not run.facts.get("resume"):
            return


def recorded_phases(journal: Journal) -> HasRun:
    """Return what tells from the results of a run whether it ran a phase; each answer is read once."""

    @cache
    def has_run(run_id: str, phase: str) -> bool:
        return any(each["phase"] == phase for each in journal.targets(run_id))

    return has_run


def covers(later: Run, run: Run, has_run: HasRun) -> bool:
    """Return whether a later run of the same job has run all that a run was to.

    A run up to a phase runs those before it, too: after `verify` succeeded, a failed `build` is done. A run
    of one phase alone, or of some of the targets, says nothing of a run up to another phase. Whether it ran
    the phase is read from its results: runs of earlier versions do not record that they ran one phase alone.
    """
    if later.facts.get("check") or later.facts.get("refused"):
        return False
    if later.phase == run.phase:
        return True
    if later.facts.get("no_lifecycle") or later.facts.get("targets"):
        return False
    phases = Phase.__members__
    if not {later.phase, run.phase} <= phases.keys():
        return False
    has_phase = phases[run.phase] in phases_until(phases[later.phase])
    return has_phase and has_run(later.run_id, run.phase)


def _follows(later: Run, run: Run, instances: _Instances) -> bool:
    """Return whether a later run has the same parameters, or failed in these and more instances.

    It must not have begun before the run had ended.
    """
    if run.finished is not None and later.started < run.finished:
        return False
    own = frozenset() if later.status not in _LEFT_WORK or later.facts.get("resume") else instances(run)
    return later.parameters == run.parameters or (bool(own) and own < instances(later))


def _holders(run: Run, newest_first: Sequence[Run], results: Callable[[str], _Results]) -> Iterator[Run]:
    """Yield the runs of the job that went on before and after a run, if they may have held it up."""
    if run.finished is None or not results(run.run_id).is_held_up:
        return
    for each in newest_first:
        is_of_job = (each.project, each.job) == (run.project, run.job)
        if is_of_job and each.started < run.started and each.finished and each.finished > run.finished:
            yield each


def has_steps(later: Run, run: Run) -> bool:
    """Return whether a later run was of all targets and phases of a run of the same phase."""
    chosen, wanted = (set(each.facts.get("targets") or ()) for each in (later, run))
    has_targets = not chosen or (bool(wanted) and wanted <= chosen)
    return has_targets and bool(run.facts.get("no_lifecycle") or not later.facts.get("no_lifecycle"))


def _left(
    run: Run, newest_first: Sequence[Run], results: Callable[[str], _Results], has_run: HasRun
) -> frozenset[Step]:
    """Return what a run recorded as left undone, and no later run of the job has done."""
    left = results(run.run_id).undone
    if run.phase not in Phase.__members__:
        return left
    # A failed step is most often done by one of the next runs, so the others need not be read.
    for later in reversed(newest_first):
        if not left:
            break
        found = results(later.run_id)
        left -= found.done
        if _is_whole(later, run, has_run):
            left = frozenset(step for step in left if step[0] not in found.instances)
    return left


def _left_elsewhere(
    run: Run,
    left: frozenset[Step],
    newest_first: Sequence[Run],
    results: Callable[[str], _Results],
    elsewhere: WorkElsewhere | None,
) -> frozenset[Step]:
    """Return what is left of these steps after what later runs of other jobs, and `process`, have done."""
    if elsewhere is None or run.phase not in Phase.__members__:
        return left
    jobs = elsewhere.jobs(name for _, _, name in left) - {run.job}
    for later in reversed(newest_first):
        if later.project == run.project and later.job in jobs:
            left -= results(later.run_id).done
    return frozenset(step for step in left if not elsewhere.is_processed(run, step))


def _is_done_whole(
    instances: frozenset[_Instance],
    run: Run,
    newest_first: Sequence[Run],
    results: Callable[[str], _Results],
    has_run: HasRun,
) -> bool:
    """Return whether later runs have done all of a run's instances, of which at least one is known."""
    left = instances
    for later in reversed(newest_first):
        if left and _is_whole(later, run, has_run):
            left -= results(later.run_id).instances
    return bool(instances) and not left


def _is_whole(later: Run, run: Run, has_run: HasRun) -> bool:
    """Return whether a later run has recorded all steps of its instances, those of a run among them."""
    is_whole = later.finished is not None and not later.is_partial
    return is_whole and covers(later, run, has_run)


def _results(entries: Iterable[Mapping[str, Any]]) -> _Results:
    found: dict[bool, set[Step]] = {True: set(), False: set()}
    statuses = set()
    for each in entries:
        instance = tuple(sorted(each.get("instance", {}).items()))
        found[is_entry_undone(each)].add((instance, each["phase"], each["name"]))
        statuses.add(each["status"])
    is_held_up = Status.BLOCKED in statuses and not {Status.FAILED, Status.ABORTED} & statuses
    return _Results(frozenset(found[False]), frozenset(found[True]), is_held_up)
