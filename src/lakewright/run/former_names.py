"""The names that targets had when they were built: a renamed one writes what it wrote under its former name.

The history and the taints name targets. What they say of a name that is not declared any more is thereby said
of the target that writes the same place now.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING, Any

from lakewright.plan.phase import Phase
from lakewright.run.outputs import WRITES, recorded_places, written_by

if TYPE_CHECKING:
    from lakewright.lake.lake import Lake
    from lakewright.manifest.journal import Journal, Run, Taint
    from lakewright.spec.project import Project

__all__ = ["FormerNames"]

RUNS = 100
"""Number of the project's last runs in which the place is looked for that a tainted target has written."""


@dataclass(frozen=True, slots=True)
class FormerNames:
    """Finds the declared targets of names that are not declared any more.

    Of a project with faults nothing is found: a name may be missing because its file can't be read.
    """

    project: Project
    lake: Lake
    journal: Journal
    _found: dict[str, str | None] = field(default_factory=dict, init=False)

    def entries(self, run: Run) -> Iterator[Mapping[str, Any]]:
        """Yield the results of a run's targets, each with the name that its target has now."""
        for entry in self.journal.targets(run.run_id):
            name = None if self._is_declared(entry["name"]) else self._name_now(entry)
            yield entry if name is None else {**entry, "name": name}

    def taints(self) -> Iterator[Taint]:
        """Yield the project's taints, each with the name that its target has now."""
        for taint in self.journal.taints(self.project.name):
            name = self.of_taint(taint)
            yield taint if name is None else replace(taint, place=replace(taint.place, target=name))

    def of_taint(self, taint: Taint) -> str | None:
        """Return the name that a tainted target has now; None if it has no other one."""
        former = taint.place.target
        if self._is_declared(former):
            return None
        if former not in self._found:
            for run in islice(self.journal.runs(project=self.project.name), RUNS):
                of_target = (each for each in self.journal.targets(run.run_id) if each["name"] == former)
                if any(self._name_now(each) is not None for each in of_target):
                    break
        return self._found.get(former)

    def _is_declared(self, name: str) -> bool:
        return name in self.project.targets or bool(self.project.faults)

    def _name_now(self, entry: Mapping[str, Any]) -> str | None:
        """Return the declared target that writes what an entry of the history says to have been written."""
        former, places = entry["name"], entry.get(WRITES)
        if former not in self._found and places and entry["phase"] == Phase.BUILD.value:
            self._found[former] = self._writer(list(places), entry.get("instance", {}))
        return self._found.get(former)

    def _writer(self, places: list[str], parameters: Mapping[str, str]) -> str | None:
        for job in self.project.jobs.values():
            if {each.name for each in job.parameters} != parameters.keys():
                continue
            for name in job.targets:
                written = written_by(self.project, self.lake, job, name, parameters)
                if recorded_places(written) == places:
                    return name
        return None
