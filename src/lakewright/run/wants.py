"""Wants: the steps of an instance of a job that are left, recorded from a run's start until they are done.

They say what `--resume` and `--retry` run, whatever runs have failed or were killed meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from lakewright.manifest.journal import WANT, Journal, Run
from lakewright.manifest.store import Put
from lakewright.plan.phase import Phase
from lakewright.plan.status import Planned
from lakewright.run.builds import instance_digest

if TYPE_CHECKING:
    from lakewright.plan.step import Plan, Step, StepKey
    from lakewright.run.result import TargetResult


@dataclass(frozen=True, slots=True)
class Want:
    """The steps of an instance of a job that are left.

    Attributes:
        parameters: The parameters of the instance, with secrets hidden.
        left: For the phase and the target of each step, the run that was to take it last.
    """

    project: str
    job: str
    parameters: Mapping[str, str]
    left: Mapping[tuple[Phase, str], str] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """The key of its document."""
        return f"{self.project}/{self.job}/{instance_digest(self.parameters)}"

    @property
    def put(self) -> Put:
        """The put that records it; nothing is kept once no step is left."""
        steps = [[phase.value, target, run] for (phase, target), run in self.left.items()]
        value = {
            "project": self.project,
            "job": self.job,
            "parameters": dict(self.parameters),
            "left": steps,
        }
        return Put(WANT, self.key, value if steps else None)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Want:
        """Return the want of a document's value."""
        left = {(Phase(phase), target): run for phase, target, run in value["left"]}
        return cls(value["project"], value["job"], value["parameters"], left)

    def without(self, phase: Phase, target: str) -> Want:
        """Return what is left once a step is done; what is emptied or removed is not to be built any more."""
        done = {(phase, target)}
        if phase.is_cleanup:
            done |= {(each, target) for each in Phase if not each.is_cleanup}
        return replace(self, left={key: run for key, run in self.left.items() if key not in done})


def read_wants(journal: Journal, project: str, job: str | None = None) -> Iterator[Want]:
    """Yield what is left of the instances of a project's jobs, or of one job."""
    prefix = f"{project}/" if job is None else f"{project}/{job}/"
    for document in journal.store.documents(WANT, prefix=prefix):
        want = Want.from_json(document.value)
        if want.project == project and job in (None, want.job):
            yield want


def steps_left(
    journal: Journal, project: str, job: str, instances: Sequence[Mapping[str, str]]
) -> frozenset[StepKey]:
    """Return the steps that are left of instances, by the indexes of these."""
    found = {want.key: want for want in read_wants(journal, project, job)}
    own = (Want(project, job, journal.hide_secrets(each)) for each in instances)
    return frozenset(
        (index, *step)
        for index, want in enumerate(own)
        for step in (found[want.key].left if want.key in found else ())
    )


@dataclass(slots=True)
class WantRecorder:
    """Records what a run leaves of its instances."""

    journal: Journal
    run: Run
    plan: Plan
    _wants: dict[int, Want] = field(default_factory=dict, init=False)

    def begun(self) -> Iterator[Put]:
        """Yield the puts that record, as the run starts, which steps it is to take."""
        known = {want.key: want for want in read_wants(self.journal, self.run.project, self.run.job)}
        for index, instance in enumerate(self.plan.instances):
            own = Want(self.run.project, self.run.job, self.journal.hide_secrets(instance.parameters))
            before = known.get(own.key, own)
            left = dict(before.left)
            for step in (step for phase in instance.phases for step in phase.steps):
                if step.status is Planned.CLEAN:
                    left.pop((step.phase, step.target), None)
                else:
                    left[step.phase, step.target] = self.run.run_id
            self._wants[index] = replace(own, left=left)
            if left != before.left:
                yield self._wants[index].put

    def end(self, index: int, step: Step, result: TargetResult) -> Sequence[Put]:
        """Return the puts that record that a step is done; none if it is not, or was not to be taken."""
        want = self._wants[index]
        if result.is_undone or (step.phase, step.target) not in want.left:
            return ()
        self._wants[index] = want.without(step.phase, step.target)
        return (self._wants[index].put,)
