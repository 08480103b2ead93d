"""Which failed runs are listed: those whose work no later run of the same job has done."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias

from lakewright.manifest.journal import Journal, Run
from lakewright.plan.phase import Phase, phases_until
from lakewright.plan.status import Status
from lakewright.run.planning import is_entry_undone

__all__ = ["covers", "recorded_phases", "undone_runs"]

HasRun: TypeAlias = Callable[[str, str], bool]
"""Returns whether a run, given by its id, ran a phase."""

_Instance: TypeAlias = tuple[tuple[str, str], ...]
_PARTIAL = ("targets", "no_lifecycle", "resume")
"""Facts of runs that leave out steps of their instances."""

_Step: TypeAlias = tuple[_Instance, str, str]
"""An instance, a phase and a target."""


@dataclass(frozen=True, slots=True)
class _Results:
    """The recorded steps of a run: those that it did or found done, and those that it left undone."""

    done: frozenset[_Step]
    undone: frozenset[_Step]

    @property
    def instances(self) -> frozenset[_Instance]:
        """The instances of which nothing was left undone."""
        return frozenset(step[0] for step in self.done) - {step[0] for step in self.undone}


def undone_runs(journal: Journal, newest_first: Iterable[Run]) -> Iterator[Run]:
    """Yield the failed runs whose work no later run of the same job has done.

    A later run with the same parameters stands for a failed one, however it ended. Runs with other parameters
    have done its work once each step that it left undone has succeeded, or its instance as a whole.

    A run that only compares, such as `rebuild --check`, does not do the work of one that writes. If it fails,
    or a rewind is refused before it begins, nothing is left undone.
    """
    has_run = recorded_phases(journal)

    @cache
    def results(run_id: str) -> _Results:
        return _results(journal.targets(run_id))

    seen: dict[tuple[str, str], list[Run]] = {}
    for run in newest_first:
        later = seen.setdefault((run.project, run.job), [])
        is_idle = run.facts.get("check") or run.facts.get("refused")
        if run.status in (Status.FAILED, Status.ABORTED) and not is_idle:
            same = (each for each in later if each.parameters == run.parameters)
            if not any(covers(each, run, has_run) for each in same) and not _is_settled(
                run, later, results, has_run
            ):
                yield run
        later.append(run)


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


def _is_settled(
    run: Run, newest_first: Sequence[Run], results: Callable[[str], _Results], has_run: HasRun
) -> bool:
    """Return whether later runs, of whatever parameters, have done all that a run left undone.

    A run that was killed did not record what it left undone, so they never have.
    """
    if run.finished is None or run.phase not in Phase.__members__ or not newest_first:
        return False
    left = undone = results(run.run_id).undone
    # A failed step is most often done by one of the next runs, so the others need not be read.
    for later in reversed(newest_first):
        if not left:
            break
        found = results(later.run_id)
        left -= found.done
        is_whole = later.finished is not None and not any(map(later.facts.get, _PARTIAL))
        if is_whole and covers(later, run, has_run):
            left = frozenset(step for step in left if step[0] not in found.instances)
    return bool(undone) and not left


def _results(entries: Iterable[Mapping[str, Any]]) -> _Results:
    found: dict[bool, set[_Step]] = {True: set(), False: set()}
    for each in entries:
        instance = tuple(sorted(each.get("instance", {}).items()))
        found[is_entry_undone(each)].add((instance, each["phase"], each["name"]))
    return _Results(frozenset(found[False]), frozenset(found[True]))
