"""The facts of what targets have built: their builds, what they read, and what is there, without Spark.

Each table's log is read once, however many instances read or write it. The builds of settled targets are not
read at all.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from operator import itemgetter
from types import MappingProxyType
from typing import TYPE_CHECKING

from lakewright.due.facts import Check, Facts, Kind, Output, Subject
from lakewright.due.outputs import Moves, output_plan
from lakewright.errors import LakewrightError
from lakewright.lake.history import ABSENT, UNSEEN, TableHistories, stamp_of
from lakewright.manifest.journal import SETTLED
from lakewright.manifest.record import format_instant
from lakewright.plan.dirtiness import BuildPolicy, Refresh
from lakewright.plan.phase import Phase
from lakewright.plan.resource_index import ResourceIndex
from lakewright.run.builds import (
    BuildState,
    RecordedBuild,
    RecordedCheck,
    logged_builds,
    marked_builds,
    read_builds,
    read_checks,
)
from lakewright.run.planning import node_of
from lakewright.run.wants import read_wants
from lakewright.spec.expressions.secrets import HIDDEN
from lakewright.targets.context import TargetDefaults
from lakewright.targets.definition import definition_of
from lakewright.targets.lease import table_resource
from lakewright.targets.target import Target
from lakewright.usecases.declared_nodes import offline_lake, sample_workspace, sampled_jobs
from lakewright.usecases.due.build_marks import BuildMarks, last_builds, part_of
from lakewright.usecases.due.settled import MOST_PLACES, Settled, SettledDocuments, digest_of

if TYPE_CHECKING:
    from lakewright.app import App
    from lakewright.manifest.store import Put
    from lakewright.plan.graph import Node
    from lakewright.plan.resource import Resource
    from lakewright.slices.chain import SliceChain
    from lakewright.spec.models.job import Job


@dataclass(frozen=True, slots=True)
class _Declared:
    """A target of a job, as it is declared.

    Attributes:
        definition: The digest of what decides its rows.
        node: What it reads and writes, in an instance of sample parameters.
    """

    job: Job
    definition: str
    node: Node
    is_append: bool
    only_if_empty: bool
    refresh: Refresh


@dataclass
class OutputObserver:
    """Observes the instances of a project's targets.

    Attributes:
        chains: The chains of entities that were observed already, by what commands call them.
        slices: The slices of these that may be processed next.
        moving: The entities whose tables have steps, by what commands call them.
        unknown: Why targets could not be observed.
    """

    app: App
    chains: Mapping[str, SliceChain] = field(default_factory=dict)
    slices: Mapping[str, frozenset[str]] = field(default_factory=dict)
    moving: Collection[str] = ()
    unknown: dict[Subject, str] = field(default_factory=dict)
    _verified: dict[str, dict[str, Job]] = field(default_factory=dict)
    _found: dict[Resource, frozenset[str]] = field(default_factory=dict)

    def outputs(self, names: Collection[str] = ()) -> tuple[Output, ...]:
        """Return the instances of targets that are not settled, each after those whose outputs it reads.

        Args:
            names: Targets; all unless given.
        """
        settled = self._looked_at[0]
        wanted = (name for name in self._order if (not names or name in names) and name not in settled)
        return tuple(output for name in wanted for output in self._of_target(name))

    @cached_property
    def targets(self) -> Mapping[str, Mapping[str, _Declared]]:
        """The targets that build rows, by name, and by the job that has them."""
        found: dict[str, dict[str, _Declared]] = {}
        project = self.app.project

        def report(job: Job, error: LakewrightError) -> None:
            self.unknown[Subject(job.name, kind=Kind.TARGET)] = error.message

        for job, workspace, names in sampled_jobs(project, offline_lake(project), report):
            for name in names:
                if ("target", name) in project.faulty:
                    continue
                try:
                    target = Target.named(workspace, name)
                    is_entity = target.kind == Kind.ENTITY  # slices are checked as they are processed
                    if target.enabled and not is_entity and Phase.VERIFY in target.phases_in(workspace):
                        self._verified.setdefault(name, {})[job.name] = job
                    definition = definition_of(target, workspace) if target.enabled else None
                    if definition is None or Phase.BUILD not in target.phases_in(workspace):
                        continue
                    found.setdefault(name, {})[job.name] = _Declared(
                        job,
                        definition.digest,
                        node_of(target, workspace, Phase.BUILD),
                        target.append(workspace, self._defaults) is not None,
                        target.policy(self._defaults) is BuildPolicy.IF_EMPTY,
                        target.refresh,
                    )
                except LakewrightError as error:
                    self.unknown[Subject(name, kind=Kind.TARGET)] = error.message
        return found

    @cached_property
    def _defaults(self) -> TargetDefaults:
        return TargetDefaults.of(self.app.project.config)

    @cached_property
    def _cursors(self) -> SettledDocuments:
        return SettledDocuments(self.app, SETTLED)

    @cached_property
    def _looked_at(self) -> tuple[Mapping[str, Settled], tuple[RecordedBuild, ...]]:
        """The targets that are settled, and the builds of the others."""
        journal, project, cursors = self.app.journal, self.app.project.name, self._cursors
        found = {name: each for name, each in cursors.settled.items() if name in self.targets}
        settled = {
            name: each for name, each in found.items() if each.digest == self._digest(name, each.places)
        }
        for build in marked_builds(journal, project):
            settled.pop(build.target, None)
        if not settled:
            return {}, tuple(read_builds(journal, project))
        builds, others = list[RecordedBuild](), {*self.targets, *cursors.names} - settled.keys()
        moving = {*self.moving}
        while True:
            more = list(read_builds(journal, project, others))
            builds += more
            moving |= others | {self._named(each) for each in more if each.target not in self.targets}
            written = {place.whole for each in more for place in each.writes}
            written |= {place.whole for name in others for place in self._provided(name)}
            others = {
                name
                for name, each in settled.items()
                if name in moving or not written.isdisjoint(each.writes) or self._reads(each, moving)
            }
            if not others:
                return settled, tuple(builds)
            settled = {name: each for name, each in settled.items() if name not in others}

    def _provided(self, name: str) -> frozenset[Resource]:
        """Return the places that a target makes as it is declared."""
        jobs = self.targets.get(name, {})
        return frozenset(place for each in jobs.values() for place in each.node.provides)

    def _reads(self, settled: Settled, moving: Collection[str]) -> bool:
        """Return whether a target reads what some entities or targets make."""
        return any(not self._makers_at(place).isdisjoint(moving) for place in settled.reads)

    def _digest(self, name: str, places: Iterable[Resource]) -> str:
        """Return a digest of what is declared of a target, and of the stamps of places."""
        declared = [
            (each.job.name, each.definition, each.is_append, each.only_if_empty, _named(each.node))
            for each in self.targets[name].values()
        ]
        stamps = sorted((str(place), stamp_of(self.app.lake, place)) for place in places)
        return digest_of(self._declared, declared, stamps)

    @cached_property
    def _declared(self) -> str:
        """What is declared of the project that decides which changes concern an instance."""
        project = self.app.project
        raw = {name: each.raw for name, each in project.targets.items() if each.kind == Kind.ENTITY}
        text = repr(sorted(raw.items(), key=itemgetter(0)))
        bronze = [each.places(project.lake).slices.pattern for each in project.entities.values()]
        jobs = [(each.name, each.parameters, each.targets) for each in project.jobs.values()]
        entries = project.scope.entries_behind(text)
        return digest_of(text, entries, bronze, jobs)

    def settling(self) -> Iterator[Put]:
        """Yield the puts that record which targets are settled, of those that are not yet known to be."""
        settled, _ = self._looked_at
        for name in self.targets:
            builds = self._builds.get(name, ())
            if name in settled or any(each.target != name for each in builds):
                continue
            outputs = tuple(self._of_target(name))
            is_seen = all(subject.name != name for subject in self.unknown)
            is_seen &= not any(each.unseen for each in outputs)
            if outputs and is_seen and not any(any(output_plan(e, Facts(), Moves())) for e in outputs):
                reads = frozenset(place.whole for each in builds for place in each.inputs)
                writes = frozenset(place.whole for each in builds for place in each.writes)
                found = Settled(self._digest(name, reads | writes), reads, writes)
                if len(found.places) <= MOST_PLACES:
                    yield self._cursors.put(name, found)

    @cached_property
    def logged(self) -> Mapping[str, RecordedBuild]:
        """The builds that are in logs only, by their keys: the manifest was lost, or is an older copy."""
        settled, builds = self._looked_at
        known, found = {each.key: each.order for each in builds}, dict[str, RecordedBuild]()
        for name in self.targets:
            places = {place.whole for place in self._provided(name)}
            for history in map(self._histories.of, places if name not in settled else ()):
                for build in () if history is None else logged_builds(history, self.app.project.name):
                    if build.target == name and build.order > known.get(build.key, ""):
                        found.setdefault(build.key, build)
        return found

    @cached_property
    def _histories(self) -> TableHistories:
        return TableHistories(self.app.lake)

    @cached_property
    def _marks(self) -> BuildMarks:
        return BuildMarks(self.app, lambda: self._last, self._histories, self.chains)

    @cached_property
    def _last(self) -> Sequence[RecordedBuild]:
        """The builds that count; one that only a log has is later than the recorded one of its instance."""
        return last_builds({**{each.key: each for each in self._looked_at[1]}, **self.logged}.values())

    @cached_property
    def _builds(self) -> Mapping[str, list[RecordedBuild]]:
        """The builds of each target."""
        found: dict[str, list[RecordedBuild]] = {}
        for build in self._last:
            found.setdefault(self._named(build), []).append(build)
        return found

    def _named(self, build: RecordedBuild) -> str:
        """Return the target of a build; one that was renamed is known by what it writes."""
        if build.target in self.targets:
            return build.target
        makers = frozenset().union(*(self._makers_at(each.whole) for each in build.writes))
        return next(iter(makers)) if len(makers) == 1 else build.target

    @cached_property
    def _written(self) -> frozenset[frozenset[Resource]]:
        """The places of all builds that are recorded."""
        return frozenset(frozenset(each.writes) for builds in self._builds.values() for each in builds)

    @cached_property
    def _makers(self) -> ResourceIndex[str]:
        """What commands call the entities and targets that make each place."""
        index: ResourceIndex[str] = ResourceIndex()
        for entity in self.app.project.entities.values():
            index.add(table_resource(entity.places(self.app.project.lake).silver), entity.called)
        for name in self.targets:
            for place in {each.whole for each in self._provided(name)}:
                index.add(place, name)
        return index

    @cached_property
    def _order(self) -> tuple[str, ...]:
        """The names of the targets, each after those whose outputs it reads."""
        before = {
            name: {
                maker
                for declared in jobs.values()
                for place in declared.node.requires
                for maker in self._makers_at(place.whole)
                if maker in self.targets and maker != name
            }
            for name, jobs in self.targets.items()
        }
        try:
            return tuple(TopologicalSorter(before).static_order())
        except CycleError:  # targets of several jobs read each other
            return tuple(self.targets)

    def unrecorded(self, names: Collection[str] = ()) -> tuple[Subject, ...]:
        """Return the targets of which something is there, and no build is recorded of any instance.

        Their instances are not known: the manifest was lost, or is older than the builds.
        """
        found, settled = [], self._looked_at[0]
        for name, jobs in self.targets.items():
            is_asked = (not names or name in names) and name not in settled and not self._builds.get(name)
            if is_asked and all(each.job.parameters for each in jobs.values()):
                places = {place.whole for place in self._provided(name)}
                marks = {self._marks.now(each) for each in places if not self._marks.is_in_bronze(each)}
                if marks - {ABSENT, UNSEEN}:
                    found.append(Subject(name, kind=Kind.TARGET))
        return tuple(found)

    def checks(self, names: Collection[str] = ()) -> tuple[Check, ...]:
        """Return what VERIFY of instances has found, and which of them runs were to check, and did not.

        Of instances that check the same places, the last one counts.
        """
        last: dict[object, RecordedCheck] = {}
        recorded = sorted(read_checks(self.app.journal, self.app.project.name), key=lambda each: each.order)
        for each in recorded:
            last[each.target, frozenset(each.inputs)] = each
        found = [self._check(each) for each in last.values()]
        known = {(each.target, part_of(each.parameters)) for each in recorded}
        for want in read_wants(self.app.journal, self.app.project.name):
            part, left = (
                part_of(want.parameters),
                [name for phase, name in want.left if phase is Phase.VERIFY],
            )
            if any(phase is Phase.BUILD and name in self.targets for phase, name in want.left):
                continue  # these are built first
            found += [
                Check(Subject(name, part, Kind.TARGET), None, job=want.job, instance=want.parameters)
                for name in left
                if (name, part) not in known and self._job(name, want.job, want.parameters)
            ]
        return tuple(each for each in found if each is not None and (not names or each.subject.name in names))

    def _check(self, check: RecordedCheck) -> Check | None:
        job = self._job(check.target, check.job, check.parameters)
        if job is None:
            return None
        return Check(
            Subject(check.target, part_of(check.parameters), Kind.TARGET),
            check.is_good,
            {str(each): mark for each, mark in check.inputs.items()},
            {
                str(each): self._marks.input_now(each, mark, job, check.parameters)
                for each, mark in check.inputs.items()
            },
            job.name,
            check.parameters,
        )

    def _job(self, target: str, name: str, instance: Mapping[str, str]) -> Job | None:
        """Return the job that checks an instance of a target; None if none does any more."""
        jobs = self._verified.get(target, {}) if self.targets else {}
        fitting = (each for each in (jobs.get(name), *jobs.values()) if each is not None)
        is_secret = any(HIDDEN in text for text in instance.values())
        return next((each for each in fitting if not is_secret and _fits(each, instance)), None)

    def _of_target(self, name: str) -> Iterator[Output]:
        jobs = self.targets[name]
        builds = sorted(self._builds.get(name, ()), key=lambda each: each.order)
        parts, has_moved = set(), bool(builds) and self._is_elsewhere(builds[-1], jobs)
        for build in builds:
            fitting = (each for each in jobs.values() if _fits(each.job, build.parameters))
            declared = jobs.get(build.job) or next(fitting, None)
            if declared is None or not _fits(declared.job, build.parameters):
                continue  # no job has it any more
            parts.add(part := part_of(build.parameters))
            if any(HIDDEN in text for text in build.parameters.values()):
                self.unknown[Subject(name, part, Kind.TARGET)] = "its parameters are secret, and not recorded"
                continue
            if has_moved:
                yield self._unbuilt(name, declared, build.parameters)
            else:
                yield self._output(name, declared, build)
        for declared in jobs.values():
            is_new = "" not in parts and frozenset(declared.node.provides) not in self._written
            if not declared.job.parameters and is_new:
                parts.add("")
                yield self._unbuilt(name, declared)

    def _is_elsewhere(self, build: RecordedBuild, jobs: Mapping[str, _Declared]) -> bool:
        """Return whether a build was made into other places than those that are declared for it now."""
        declared = jobs.get(build.job)
        written = {each.whole for each in build.writes}
        if declared is None or not written or not written.isdisjoint(e.whole for e in declared.node.provides):
            return False
        given = [f"{name}={text}" for name, text in build.parameters.items()]
        try:  # the place may depend on the parameters
            workspace = sample_workspace(
                self.app.project, declared.job, offline_lake(self.app.project), given
            )
            node = node_of(Target.named(workspace, declared.node.name), workspace, Phase.BUILD)
        except LakewrightError:
            return False
        return written.isdisjoint(each.whole for each in node.provides)

    def _unbuilt(
        self, name: str, declared: _Declared, instance: Mapping[str, str] = MappingProxyType({})
    ) -> Output:
        requires, places = declared.node.requires, declared.node.provides
        is_there = (declared.is_append and any(self._marks.now(each) != ABSENT for each in places)) or (
            declared.only_if_empty and any(map(self._marks.is_filled, places))
        )
        return Output(
            Subject(name, part_of(instance), Kind.TARGET),
            declared.definition,
            self._present(requires),
            is_append=declared.is_append,
            only_if_empty=declared.only_if_empty,
            is_unsure=is_there,
            makers=self._makers_of(requires),
            job=declared.job.name,
            instance=instance,
        )

    def _present(self, places: Iterable[Resource]) -> dict[str, str | None]:
        return {str(each): self._marks.now(each) or None for each in places}

    def _output(self, name: str, declared: _Declared, build: RecordedBuild) -> Output:
        build = self._marks.recovered(build)
        is_begun = build.state is not BuildState.WANTED  # what it reads is recorded as it begins
        reads = build.inputs if is_begun else declared.node.requires
        found = self._marks.output(build, declared.job, declared.definition, self._makers_of(reads))
        is_held = found.mark is not None
        return replace(
            found,
            subject=Subject(name, found.subject.part, Kind.TARGET),
            inputs=found.inputs if is_begun else self._present(reads),
            slices=self._slices(reads, declared.job, build.parameters),
            is_append=declared.is_append,
            only_if_empty=declared.only_if_empty,
            is_refreshed=declared.refresh is not Refresh.NEVER,
            is_refresh_due=bool(found.unseen) and self._is_refresh_due(declared.refresh, build),
            is_unrecorded=build.key in self.logged,
            is_unsure=declared.is_append and build.may_have_added,
            foreign=self._marks.foreign(build, is_append=declared.is_append) if is_held else "",
        )

    def _is_refresh_due(self, refresh: Refresh, build: RecordedBuild) -> bool:
        today = format_instant(self.app.store.now())[: len("2024-05-01")]
        return refresh is Refresh.ALWAYS or (refresh is Refresh.DAILY and build.order < today)

    def _slices(
        self, places: Iterable[Resource], job: Job, instance: Mapping[str, str]
    ) -> dict[str, frozenset[str]]:
        """Return for the entities among some places which slices concern an instance."""
        found = {}
        for place in places:
            silver = self._marks.silver.get(place)
            if silver is None:
                continue
            entity = silver.chain.entity.called
            if (names := self.slices.get(entity)) is not None:
                own = silver.slices_of(job, instance, names)
                if own is not None:
                    found[entity] = own
        return found

    def _makers_of(self, places: Iterable[Resource]) -> dict[str, frozenset[str]]:
        return {str(each): self._makers_at(each.whole) for each in places}

    def _makers_at(self, place: Resource) -> frozenset[str]:
        if place not in self._found:
            self._found[place] = frozenset(self._makers.touching(place))
        return self._found[place]


def _named(node: Node) -> tuple[list[str], list[str]]:
    return sorted(map(str, node.requires)), sorted(map(str, node.provides))


def _fits(job: Job, instance: Mapping[str, str]) -> bool:
    """Return whether an instance has a value for each parameter of a job, and no others."""
    return instance.keys() == {each.name for each in job.parameters}
