"""Which instances of targets are out of date because slices came into a table that they read.

The run that processes a slice builds the targets of its own instances. Others were built before, and a later
run would find them filled. Which rows of the table an instance reads is not known: it counts if a run of it
would have taken the slice, or, where targets take all slices, if the slice's name tells no other instance.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, Any

from lakewright.errors import LakewrightError
from lakewright.manifest.record import State
from lakewright.plan.observation import Answer, Observation
from lakewright.plan.phase import Phase
from lakewright.plan.status import Status
from lakewright.run.leftovers import is_built
from lakewright.slices.application import application_of
from lakewright.slices.discover import slice_name
from lakewright.slices.other_runs import is_limited, is_mentioned, processing_jobs, takes_slice
from lakewright.spec.arguments import floor_value, sample_arguments
from lakewright.spec.expressions.secrets import HIDDEN
from lakewright.spec.expressions.values import ValueType
from lakewright.targets.defaults import TargetDefaults
from lakewright.targets.target import Target
from lakewright.usecases.staleness.declared_nodes import offline_lake, sample_workspace
from lakewright.usecases.staleness.earlier_builds import RUNS, Built, former_names
from lakewright.usecases.staleness.left_partitions import left_instances, own_partitions, recovered_at
from lakewright.usecases.staleness.overwritten import newest_writers, overwritten_output

if TYPE_CHECKING:
    from lakewright.app import App
    from lakewright.manifest.item import Item
    from lakewright.manifest.journal import Taint
    from lakewright.spec.models.entity import Entity
    from lakewright.spec.models.job import Job, Parameter

__all__ = ["Arrived", "always_runs", "is_built_whole", "stale_instances"]

_CLEANUP = (Phase.TRUNCATE, Phase.DESTROY)
_TIMES = (ValueType.DATE, ValueType.TIMESTAMP)
_FILLED = Observation("", exists=Answer.YES, filled=Answer.YES)


@dataclass(frozen=True, slots=True)
class Arrived:
    """Slices that were processed into a table for the first time.

    Attributes:
        names: Their names.
        at: When the last of them was recorded as processed: builds that began later have read all.
        run_id: The run of a job that processed them; None if none did.
    """

    names: tuple[str, ...]
    at: datetime
    run_id: str | None = None

    @classmethod
    def of(cls, app: App, entity: Entity, items: Sequence[Item], run_id: str | None) -> Arrived:
        """Return the slices of items, which are in the order in which they were processed."""
        application = application_of(app.project.name, entity)
        times = (
            record.timestamp
            for record in app.store.records(items[-1].item_id)
            if record.state is State.PROCESSED and record.application.key == application.key
        )
        return cls(tuple(map(slice_name, items)), max(times, default=app.store.now()), run_id)


def stale_instances(
    app: App,
    entity: Entity,
    readers: Mapping[str, frozenset[str]],
    arrived: Arrived,
    cut_off: Mapping[str, Sequence[Taint]],
) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Yield the targets, with the parameters of an instance, that slices made out of date.

    Left out are instances that were built since, those that cannot have read the slices, and targets that the
    next run of their job builds anyway.

    Args:
        app: The project.
        entity: The entity.
        readers: Names of the targets that are built from its table, by job.
        arrived: The slices.
        cut_off: The taints of instances that runs may have built before they were cut off, by job.
    """
    for name, targets in readers.items():
        if targets:
            begun = [(each.place.target, each.place.parameters) for each in cut_off.get(name, ())]
            yield from _Readers(app, app.project.jobs[name], targets, begun).stale(entity, arrived)


def always_runs(app: App, job: Job, name: str) -> bool:
    """Return whether each run of a job builds a target, even if it is filled."""
    try:
        target = Target.named(sample_workspace(app.project, job, offline_lake(app)), name)
        return target.build_dirtiness(_FILLED, TargetDefaults.of(app.project.config)).is_to_run
    except LakewrightError:
        return False


def is_built_whole(app: App, job: Job, name: str, parameters: Mapping[str, str]) -> bool:
    """Return whether a target overwrites the same output in each instance, whatever its parameters."""
    if not parameters:
        return True
    output = overwritten_output(app, job, name, parameters)
    others = dict(parameters) | dict(each.split("=", 1) for each in _samples(job.parameters))
    return output is not None and output == overwritten_output(app, job, name, others)


@dataclass(frozen=True, slots=True)
class _Readers:
    """The targets of a job that read a table.

    Attributes:
        begun: Instances that runs may have built before they were cut off.
    """

    app: App
    job: Job
    names: frozenset[str]
    begun: Sequence[_Instance] = ()

    def stale(self, entity: Entity, arrived: Arrived) -> Iterator[tuple[str, Mapping[str, str]]]:
        fresh, older = self._builds(entity, arrived)
        ordered = list(newest_writers(self.app, self.job, [*fresh, *older]))
        built = {*map(_key, fresh), *self._built_by_others(arrived)} if ordered else set()
        takers = _Takers(self.app, self.job, entity, [parameters for _, parameters in ordered])
        for name, parameters in ordered:
            if _key((name, parameters)) in built:
                continue
            is_whole = is_built_whole(self.app, self.job, name, parameters)
            if is_whole and always_runs(self.app, self.job, name):
                continue
            if is_whole or any(takers.may_read(parameters, each) for each in arrived.names):
                yield name, parameters

    def _builds(self, entity: Entity, arrived: Arrived) -> tuple[list[_Instance], list[_Instance]]:
        """Return the instances that were built with the slices, and those that were built before.

        The last ones come first, and those that only their partitions tell come last. What was emptied or
        removed since it was built counts as not built.
        """
        fresh: list[_Instance] = []
        older: list[_Instance] = []
        emptied: set[Built] = set()
        project, former = self.app.project.name, former_names(self.app)
        runs = list(islice(self.app.journal.runs(project=project, job=self.job.name), RUNS))
        for run in runs:
            has_read = run.run_id == arrived.run_id or run.started >= arrived.at
            for entry in reversed([each for each in former.entries(run) if each["name"] in self.names]):
                instance = entry["name"], entry.get("instance", {})
                if _is_emptied(entry):
                    emptied.add(_key(instance))
                elif is_built(entry) and _key(instance) not in emptied:
                    (fresh if has_read else older).append(instance)
        left = (each for each in self._left(entity, is_read=len(runs) < RUNS) if _key(each) not in emptied)
        return fresh, [*self.begun, *older, *left]

    def _built_by_others(self, arrived: Arrived) -> Iterator[Built]:
        """Yield the instances that runs of other jobs have built with the slices."""
        journal, former = self.app.journal, former_names(self.app)
        own = None if arrived.run_id is None else journal.run(arrived.run_id)
        for run in (own, *journal.runs(project=self.app.project.name, since=arrived.at)):
            for each in () if run is None or run.job == self.job.name else former.entries(run):
                if each["name"] in self.names and is_built(each):
                    yield _key((each["name"], each.get("instance", {})))

    def _left(self, entity: Entity, *, is_read: bool) -> list[_Instance]:
        """Return the instances that partitions tell.

        Where the history tells all builds, a target was not built in an instance because another one was.

        Args:
            entity: The entity whose table is read.
            is_read: Whether all runs of the job that the history has were read.
        """
        own = own_partitions(self.app, self.job, self.names)
        is_pruned = self.app.project.manifest.get("retention") is not None
        if is_read and not is_pruned and recovered_at(self.app, entity) is None:
            return own
        # A target that has left partitions itself was built in these alone.
        told = {name for name, _ in own}
        others = left_instances(self.app, self.job, self.names)
        return [*own, *(each for each in others if each[0] not in told)]


@dataclass(frozen=True, slots=True)
class _Takers:
    """Tells which instances of a job would have taken a slice of an entity.

    Attributes:
        instances: The parameters of all instances.
    """

    app: App
    job: Job
    entity: Entity
    instances: Sequence[Mapping[str, str]]

    def may_read(self, parameters: Mapping[str, str], name: str) -> bool:
        """Return whether an instance may have read a slice, had it been there."""
        if any(HIDDEN in text for text in parameters.values()):
            return True
        declared = [
            each for job, each in processing_jobs(self.app.project, self.entity.called) if job is self.job
        ]
        if declared and all(map(is_limited, declared)):
            return any(self._takes(each, parameters, name) for each in declared)
        return all(
            self._fits(each, parameters[each.name], name)
            for each in self.job.parameters
            if each.name in parameters
        )

    def _takes(self, declared: Mapping[str, Any], parameters: Mapping[str, str], name: str) -> bool:
        try:
            values = {each.name: each.parse(parameters[each.name]) for each in self.job.parameters}
        except (KeyError, ValueError):  # the job's parameters have changed since
            return False
        return takes_slice(self.app.project, self.job, declared, values, name)

    def _fits(self, parameter: Parameter, text: str, name: str) -> bool:
        """Return whether a slice's name tells no other value of a parameter.

        A slice without the date or number of any instance belongs to one that was not run yet. Words tell
        only if the name has that of another instance.
        """
        if self._is_told(parameter, text, name):
            return True
        if parameter.type in _TIMES or any(map(str.isdigit, text)):
            return False
        known = {each[parameter.name] for each in self.instances if parameter.name in each}
        return not any(self._is_told(parameter, each, name) for each in known)

    def _is_told(self, parameter: Parameter, text: str, name: str) -> bool:
        try:
            step = parameter.step(self.app.project.job_scope(self.job))
            value = parameter.parse(text)
        except (LakewrightError, ValueError):
            return is_mentioned(parameter, text, name)
        if step is None:
            return is_mentioned(parameter, text, name)
        return is_mentioned(parameter, text, name, lambda guessed: floor_value(guessed, step) == value)


_Instance = tuple[str, Mapping[str, str]]


def _is_emptied(entry: Mapping[str, Any]) -> bool:
    return entry["phase"] in _CLEANUP and entry["status"] == Status.SUCCESS


def _key(instance: _Instance) -> Built:
    name, parameters = instance
    return name, tuple(sorted(parameters.items()))


def _samples(parameters: Iterable[Parameter]) -> tuple[str, ...]:
    return sample_arguments([each.model_copy(update={"default": None}) for each in parameters])
