"""The warning that a target is to add rows that an earlier run has added already.

With the mode APPEND, each build of an instance adds its rows, also one that was meant for other targets.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lakewright.errors import Fault
from lakewright.plan.other_runs import commands_of, run_of
from lakewright.plan.phase import Phase
from lakewright.plan.step import parameters_text
from lakewright.relations.relation import OutputMode
from lakewright.run.former_names import FormerNames
from lakewright.run.leftovers import is_built, is_entry_undone
from lakewright.run.outputs import is_gone, target_of, written_by
from lakewright.targets.defaults import TargetDefaults
from lakewright.targets.writing import WritingTarget

if TYPE_CHECKING:
    from lakewright.lake.lake import Lake
    from lakewright.manifest.journal import Journal, Run
    from lakewright.plan.resource import Resource
    from lakewright.spec.models.job import Job
    from lakewright.spec.project import Project
    from lakewright.targets.target import Target
    from lakewright.workspace.workspace import Workspace

__all__ = ["ADDED_BEFORE", "AddedBefore"]

ADDED_BEFORE = "added_before"
"""The code of the warning."""

RUNS = 200
"""Number of the job's last runs in which an earlier build is looked for."""

_CLEANUP = (Phase.TRUNCATE.value, Phase.DESTROY.value)


@dataclass(frozen=True, slots=True)
class AddedBefore:
    """Finds earlier builds of instances whose rows a build adds.

    Attributes:
        job: The job that is planned.
    """

    project: Project
    lake: Lake
    journal: Journal
    job: Job
    _read: dict[str, tuple[Mapping[str, Any], ...]] = field(default_factory=dict, init=False)

    def warning(
        self,
        target: Target,
        workspace: Workspace,
        parameters: Mapping[str, str],
        defaults: TargetDefaults,
    ) -> Fault | None:
        """Return the warning for a target that adds rows; None if none of an earlier build are there.

        A job without parameters adds rows in each of its runs, as that is all that it can do.
        """
        is_adding = isinstance(target, WritingTarget) and target.mode_of(defaults) is OutputMode.APPEND
        run = self._run(target, workspace, parameters) if is_adding and parameters else None
        if run is None:
            return None
        instance, chosen = run_of(self.job.name, parameters), ["-t", target.name]
        (emptied,) = commands_of([instance], phase=Phase.TRUNCATE, options=chosen)
        return Fault(
            f"target {target.name!r} adds its rows of {parameters_text(parameters)} once more: run "
            f"{run.run_id} has added them",
            remedy=f"To have them once, choose the other targets with -t, or type `{emptied}` first, which "
            "says what else it removes.",
            code=ADDED_BEFORE,
        )

    def targets(self, parameters: Mapping[str, str]) -> frozenset[str]:
        """Return the targets whose rows of an instance are there, and which a build would add once more."""
        names = self.job.target_names(self.project.job_scope(self.job)) if parameters else ()
        found = (target_of(self.project, self.lake, self.job, name, parameters) for name in names)
        defaults = TargetDefaults.of(self.project.config)
        return frozenset(
            made[0].name
            for made in found
            if made is not None and self.warning(*made, parameters, defaults) is not None
        )

    def _run(self, target: Target, workspace: Workspace, parameters: Mapping[str, str]) -> Run | None:
        """Return the last run that built an instance, unless its output was emptied or removed since."""
        if is_gone(target.provides(workspace, Phase.BUILD)):
            return None
        wanted = self.journal.hide_secrets(parameters)
        for run in self.journal.runs(RUNS, project=self.project.name, job=self.job.name):
            for each in self._entries(run):
                if each["name"] != target.name:
                    continue
                if each["phase"] in _CLEANUP and self._is_emptied(
                    each, target.provides(workspace, Phase.BUILD)
                ):
                    return None
                if is_built(each) and each.get("instance", {}) == wanted:
                    return run
        return None

    def _entries(self, run: Run) -> tuple[Mapping[str, Any], ...]:
        """Return the entries of a run, which are read once for all instances of a plan."""
        if run.run_id not in self._read:
            names = FormerNames(self.project, self.lake, self.journal)
            self._read[run.run_id] = tuple(names.entries(run))
        return self._read[run.run_id]

    def _is_emptied(self, entry: Mapping[str, Any], written: frozenset[Resource]) -> bool:
        """Return whether an entry of the history says that all that a target writes was emptied."""
        if is_entry_undone(entry):
            return False
        name, phase, parameters = entry["name"], Phase(entry["phase"]), entry.get("instance", {})
        emptied = written_by(self.project, self.lake, self.job, name, parameters, phase=phase)
        return all(any(each.contains(one) for each in emptied) for one in written)
