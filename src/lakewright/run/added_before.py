"""The warning that a target is to add rows that an earlier run has added already.

With the mode APPEND, each build of an instance adds its rows, also one that was meant for other targets.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from lakewright.errors import Fault, LakewrightError
from lakewright.errors.phrase import Phrase
from lakewright.plan.observation import Answer
from lakewright.plan.other_runs import commands_of, run_of
from lakewright.plan.phase import Phase
from lakewright.plan.step import Added, parameters_text
from lakewright.relations.relation import OutputMode
from lakewright.run.build_history import BuildHistory
from lakewright.run.former_names import FormerNames
from lakewright.run.leftovers import is_built, is_entry_undone
from lakewright.run.outputs import (
    APPEND,
    WRITES,
    are_near,
    filled,
    is_gone,
    recorded_places,
    target_of,
    written_by,
)
from lakewright.run.table_marks import TableMark, mark_of
from lakewright.targets.defaults import TargetDefaults
from lakewright.targets.writing import WritingTarget

if TYPE_CHECKING:
    from lakewright.lake.lake import Lake
    from lakewright.manifest.journal import Journal, Run, Taint
    from lakewright.plan.resource import Resource
    from lakewright.spec.models.job import Job
    from lakewright.spec.project import Project
    from lakewright.targets.target import Target
    from lakewright.workspace.workspace import Workspace

__all__ = ["ADDED_BEFORE", "AddedBefore"]

ADDED_BEFORE = "added_before"
"""The code of the warning."""

RUNS = 200
"""Number of the project's last runs in which an earlier build is looked for."""

_CLEANUP = (Phase.TRUNCATE.value, Phase.DESTROY.value)

Places: TypeAlias = "frozenset[Resource]"
"""What a target writes."""


@dataclass(frozen=True, slots=True)
class AddedBefore:
    """Finds earlier builds of instances whose rows a build adds.

    Attributes:
        history: What the runs of the project have built, for the job that is planned.
        looks_far: Whether tables in object stores are looked at, too.
    """

    history: BuildHistory
    looks_far: bool = True
    _read: dict[str, tuple[Mapping[str, Any], ...]] = field(default_factory=dict, init=False)
    _runs: list[Run] = field(default_factory=list, init=False)

    @property
    def project(self) -> Project:
        """The project."""
        return self.history.project

    @property
    def lake(self) -> Lake:
        """The lake."""
        return self.history.lake

    @property
    def journal(self) -> Journal:
        """The history of runs."""
        return self.history.journal

    @property
    def job(self) -> Job:
        """The job that is planned."""
        return self.history.job

    def added(
        self,
        target: Target,
        workspace: Workspace,
        parameters: Mapping[str, str],
        defaults: TargetDefaults,
    ) -> Added | None:
        """Return that a target adds rows once more; None if none of an earlier build are there.

        A job without parameters adds rows in each of its runs, as that is all that it can do. It is meant so
        if the target declares the build policy `ALWAYS`.
        """
        if not (isinstance(target, WritingTarget) and target.mode_of(defaults) is OutputMode.APPEND):
            return None
        places = target.provides(workspace, Phase.BUILD)
        if not parameters or is_gone(places):
            return None
        instance, chosen = run_of(self.job.name, parameters), ["-t", target.name]
        (emptied,) = commands_of([instance], phase=Phase.TRUNCATE, options=chosen)
        run, text = self._run(target, workspace, parameters, places), parameters_text(parameters)
        if run is not None:
            told = f"adds its rows of {text} once more: run {run.run_id} has added them"
            why = f"run {run.run_id} had added them"
        elif target.partition and self._holds_unknown(target, workspace, places):
            told = f"adds its rows of {text} to others, which no recorded run has added"
            why = "others were there, which no recorded run had added"
        else:
            return None
        remedy = Phrase(
            "To have them once, choose the other targets with -t, or type ",
            emptied,
            " first, which says what else it removes.",
        )
        after = " If they are meant to come more than once, declare `buildPolicy: ALWAYS` for the target."
        fault = Fault(
            f"target {target.name!r} {told}",
            remedy=remedy if target.is_built_always else Phrase(remedy, after),
            code=ADDED_BEFORE,
        )
        return Added(fault, why, target.is_built_always)

    def targets(self, parameters: Mapping[str, str]) -> frozenset[str]:
        """Return the targets whose rows of an instance are there, and which a build would add once more."""
        names = self.job.target_names(self.project.job_scope(self.job)) if parameters else ()
        found = (target_of(self.project, self.lake, self.job, name, parameters) for name in names)
        defaults = TargetDefaults.of(self.project.config)
        return frozenset(
            made[0].name
            for made in found
            if made is not None and self.added(*made, parameters, defaults) is not None
        )

    def is_back(self, taint: Taint, target: Target, workspace: Workspace) -> bool:
        """Return whether the rows that a run has removed are where they were: somebody has brought them back.

        The log of their table has their append, or it is the table into which they were built, without a
        later commit that removed them. If no log tells that, something is there, and nothing was built since.
        """
        places = target.provides(workspace, Phase.BUILD)
        if taint.lost_in is None or is_gone(places) or not (self.looks_far or are_near(places)):
            return False
        built = [each for _, each in self._builds(target, taint.place.parameters, places) if is_built(each)]
        there = [self._is_there(each, target, workspace, places) for each in built if APPEND in each]
        if any(there) or (there and all(each is False for each in there)):
            return any(there)
        is_filled, now = filled(target, workspace), mark_of(places)
        mark = TableMark.from_entry(built[0]) if built else None
        if mark is None or now is None:
            return is_filled is Answer.YES and not self._is_built_since(taint.lost_in, places)
        place = next(each for each in places if each.category == "file")
        is_kept = mark.is_kept(workspace.lake, place.name, dict(place.partition))
        return is_filled is not Answer.NO and now.comes_after(mark) and is_kept

    def _is_built_since(self, run_id: str, places: Places) -> bool:
        """Return whether anything was built into places by a run, or by later ones."""
        for run in self._last_runs():
            job = self.project.jobs.get(run.job)
            for each in self._entries(run) if job is not None else ():
                if job is None or not is_built(each):
                    continue
                written = written_by(self.project, self.lake, job, each["name"], each.get("instance", {}))
                if any(one.intersects(place) for one in written for place in places):
                    return True
            if run.run_id == run_id:
                return False
        return True

    def _run(
        self, target: Target, workspace: Workspace, parameters: Mapping[str, str], places: Places
    ) -> Run | None:
        """Return the last run that built an instance and whose rows are there."""
        is_emptied = False
        for run, each in self._builds(target, parameters, places):
            if each["phase"] in _CLEANUP:
                is_emptied = is_emptied or self._is_emptied(each, places)
            elif _has_written(each):
                is_there = self._is_there(each, target, workspace, places)
                if not is_emptied if is_there is None else is_there:
                    return run
        return None

    def _builds(
        self, target: Target, parameters: Mapping[str, str], places: Places
    ) -> Iterator[tuple[Run, Mapping[str, Any]]]:
        """Yield the entries of builds of an instance, and of all that emptied the target; last runs first.

        An instance of another job is the same if it has written the same partition, whatever its parameters
        are called.
        """
        wanted = self.journal.hide_secrets(parameters)
        written = recorded_places(places) if all(each.partition for each in places) else None
        jobs = {each.name for each in self.project.jobs.values() if target.name in each.targets}
        for run in self._last_runs():
            for each in self._entries(run) if run.job in jobs else ():
                is_of_other = run.job != self.job.name and written is not None
                is_same = each.get("instance", {}) == wanted or (is_of_other and each.get(WRITES) == written)
                is_own = is_built(each) and is_same
                if each["name"] == target.name and (is_own or each["phase"] in _CLEANUP):
                    yield run, each

    def _is_there(
        self, entry: Mapping[str, Any], target: Target, workspace: Workspace, places: Places
    ) -> bool | None:
        """Return whether the rows of a build are there, as the log of the table tells it; None if unknown.

        A table that was removed may have been brought back, and RESTORE may have reverted the append.
        """
        append_id = entry.get(APPEND)
        if append_id is None or not (self.looks_far or are_near(places)):
            return None
        try:
            return target.has_appended(workspace, append_id)
        except LakewrightError:  # who looks at the table tells it
            return None

    def _holds_unknown(self, target: Target, workspace: Workspace, places: Places) -> bool:
        """Return whether a place holds rows of which no recorded run tells, as after a lost manifest."""
        if not (self.looks_far or are_near(places)) or filled(target, workspace) is not Answer.YES:
            return False
        look = self.history.look(target.name, places)
        return (look is not None and look.is_unknown) or not self.history.built_into(places)

    def _last_runs(self) -> Sequence[Run]:
        """Return the project's last runs, newest first, which are read once for all instances of a plan."""
        if not self._runs:
            self._runs.extend(self.journal.runs(RUNS, project=self.project.name))
        return self._runs

    def _entries(self, run: Run) -> tuple[Mapping[str, Any], ...]:
        """Return the entries of a run, which are read once for all instances of a plan."""
        if run.run_id not in self._read:
            names = FormerNames(self.project, self.lake, self.journal)
            self._read[run.run_id] = tuple(names.entries(run))
        return self._read[run.run_id]

    def _is_emptied(self, entry: Mapping[str, Any], written: Places) -> bool:
        """Return whether an entry of the history says that all that a target writes was emptied."""
        if is_entry_undone(entry):
            return False
        name, phase, parameters = entry["name"], Phase(entry["phase"]), entry.get("instance", {})
        emptied = written_by(self.project, self.lake, self.job, name, parameters, phase=phase)
        return all(any(each.contains(one) for each in emptied) for one in written)


def _has_written(entry: Mapping[str, Any]) -> bool:
    """Return whether a build has written rows, unless it did not count them."""
    return (entry.get("metrics") or {}).get("target_records") != 0
