"""Targets that were built from tables which have changed since, as far as the manifest remembers it.

Targets that read a table are tainted when it is undone, built again, or when a slice is processed into it a
second time; those that a run left undone are tainted too. They stay so until a run builds them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lakewright.errors import LakewrightError
from lakewright.manifest.redact import HIDDEN
from lakewright.plan.other_runs import OtherRun, commands_of
from lakewright.plan.phase import Phase

if TYPE_CHECKING:
    from lakewright.app import App
    from lakewright.manifest.journal import Taint
    from lakewright.spec.models.job import Job

__all__ = ["TaintedTarget", "tainted_targets"]

_UNBUILT = "no job builds it: add it to one, or remove the target"


@dataclass(frozen=True, slots=True)
class TaintedTarget:
    """A target that is dirty until it is built again.

    Attributes:
        reason: Why.
        instances: The parameters of the instances in which it is dirty.
        commands: The commands that build it again.
        advice: What to do if no job builds it; empty if one does.
    """

    target: str
    reason: str
    instances: tuple[Mapping[str, str], ...]
    commands: tuple[str, ...]
    advice: str = ""

    def as_json(self) -> dict[str, Any]:
        """Return the object that `status -o json` prints."""
        return {
            "target": self.target,
            "reason": self.reason,
            "instances": [dict(each) for each in self.instances],
            "do": list(self.commands),
            "advice": self.advice or None,
        }


def tainted_targets(app: App, told: Collection[str] = ()) -> Iterator[TaintedTarget]:
    """Yield the targets that are dirty until they are built again, each with its reasons.

    Left out are those that are not declared any more, and instances whose parameters the target's jobs do not
    have any more.

    Args:
        app: The project.
        told: Ids of runs that are told of by themselves, as they run or have failed: what these have left
            undone is left out.
    """
    taints = [each for each in app.journal.taints(app.project.name) if each.run_id not in told]
    jobs = list(_targets_of_jobs(app)) if taints else []
    found: dict[tuple[str, str, str], dict[tuple[tuple[str, str], ...], list[OtherRun]]] = {}
    for taint in taints:
        place = taint.place
        if place.phase != Phase.BUILD.value or place.target not in app.project.targets:
            continue
        runs, is_built = _runs(taint, jobs), any(place.target in targets for _, targets in jobs)
        if runs or not is_built:
            instances = found.setdefault((place.target, taint.reason, "" if is_built else _UNBUILT), {})
            instances[tuple(place.parameters.items())] = runs
    for (target, reason, advice), by_instance in sorted(found.items()):
        ordered = sorted(by_instance)
        commands = commands_of(run for each in ordered for run in by_instance[each])
        yield TaintedTarget(target, reason, tuple(map(dict, ordered)), commands, advice)


def _targets_of_jobs(app: App) -> Iterator[tuple[Job, frozenset[str]]]:
    for job in app.project.jobs.values():
        try:
            yield job, frozenset(job.target_names(app.project.job_scope(job)))
        except LakewrightError:  # a name that only an instance knows
            yield job, frozenset(job.targets)


def _runs(taint: Taint, jobs: Collection[tuple[Job, frozenset[str]]]) -> list[OtherRun]:
    """Return the run of the first job that builds a tainted target in its instance; none if no job does."""
    place = taint.place
    for job, targets in jobs:
        if place.target in targets and place.parameters.keys() == {each.name for each in job.parameters}:
            known = {name: text for name, text in place.parameters.items() if HIDDEN not in text}
            secret = tuple(name for name in place.parameters if name not in known)
            return [OtherRun("", job.name, tuple(known.items()), secret)]
    return []
