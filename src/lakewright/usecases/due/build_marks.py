"""Whether builds are still made from what is there: the marks of what they read and wrote, as they are now.

Each table's log is read once, however many instances read or write it. Spark is not started.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from lakewright.due.facts import Build, Kind, Output, Subject
from lakewright.lake.commit import has_changed_rows, replaces_all, restored_version
from lakewright.lake.history import ABSENT, UNSEEN, mark_of, version_of
from lakewright.plan.resource import Resource
from lakewright.run.builds import BuildState, RecordedBuild
from lakewright.slices.other_runs import entity_targets, instance_taking
from lakewright.targets.lease import table_resource

if TYPE_CHECKING:
    from lakewright.app import App
    from lakewright.lake.commit import Commit
    from lakewright.lake.history import TableHistories
    from lakewright.slices.chain import AppliedSlice, SliceChain
    from lakewright.spec.models.job import Job
    from lakewright.spec.project import Project


@dataclass
class SilverChanges:
    """The changes of the table of an entity.

    Attributes:
        chain: The entity's slices.
    """

    project: Project
    chain: SliceChain

    def __post_init__(self) -> None:
        self._by_job: dict[str, _Instances] = {}

    @cached_property
    def former_ids(self) -> frozenset[str]:
        """The identities that the table had before it was replaced by replays."""
        rewinds = (commit.content.get("rewind") or {} for commit in self.chain.log)
        return frozenset(each["replaces"] for each in rewinds if each.get("replaces"))

    @cached_property
    def _changes(self) -> tuple[int, Mapping[str, int]]:
        """The last version that may have changed any row, and the last one of each slice."""
        whole, of_slices = -1, dict[str, int]()
        logged = self.chain.logged
        for commit, slices in logged:
            names = self._names(commit, slices, logged)
            if names is None:
                whole = commit.version
            else:
                of_slices |= dict.fromkeys(names, commit.version)
        return whole, of_slices

    def _names(
        self,
        commit: Commit,
        slices: tuple[AppliedSlice, ...],
        logged: tuple[tuple[Commit, tuple[AppliedSlice, ...]], ...],
    ) -> set[str] | None:
        """Return the slices whose rows a commit has changed; None if it may have changed any."""
        own = {each.name for each in slices}
        rewind = commit.content.get("rewind")
        if rewind is None and commit.operation != "RESTORE":
            if replaces_all(commit) or (not own and has_changed_rows(commit)):
                return None
            return own
        base = restored_version(commit, self.chain.log) if rewind is None else rewind.get("base")
        if base is None:
            return None
        for each, undone in logged:
            if int(base) < each.version < commit.version:
                if has_changed_rows(each) and (not undone or replaces_all(each)):
                    return None
                own |= {one.name for one in undone}
        return own

    def last_change(self, job: Job, instance: Mapping[str, str]) -> int:
        """Return the last version in which rows have changed that concern an instance of a job.

        Rows of slices that belong to other instances don't; where that is unknown, any change does.
        """
        whole, of_slices = self._changes
        return max(whole, self._instances(job).last_change(instance, of_slices))

    def slices_of(
        self, job: Job, instance: Mapping[str, str], names: frozenset[str]
    ) -> frozenset[str] | None:
        """Return which slices concern an instance of a job; None if all do."""
        if not job.parameters:
            return None
        return self._instances(job).of(instance, names)

    def _instances(self, job: Job) -> _Instances:
        if job.name not in self._by_job:
            entity = self.chain.entity.called
            declared = next((raw for _, raw in entity_targets(self.project, entity, job.targets)), {})
            self._by_job[job.name] = _Instances(self.project, job, declared)
        return self._by_job[job.name]


class _Instances:
    """Which instance of a job each slice belongs to; each is asked for once."""

    def __init__(self, project: Project, job: Job, declared: Mapping[str, object]) -> None:
        self._project, self._job, self._declared = project, job, declared
        self._keys: dict[str, Mapping[str, str] | None] = {}
        self._latest: dict[frozenset[tuple[str, str]], int] | None = None
        self._unknown = -1

    def _key(self, name: str) -> Mapping[str, str] | None:
        if name not in self._keys:
            self._keys[name] = instance_taking(self._project, self._job, self._declared, name)
        return self._keys[name]

    def last_change(self, instance: Mapping[str, str], of_slices: Mapping[str, int]) -> int:
        """Return the last version in which slices of an instance have changed."""
        if not self._job.parameters:
            return max(of_slices.values(), default=-1)
        if self._latest is None:
            self._latest = {}
            for name, version in of_slices.items():
                key = self._key(name)
                if key is None:
                    self._unknown = max(self._unknown, version)
                else:
                    pairs = frozenset(key.items())
                    self._latest[pairs] = max(version, self._latest.get(pairs, -1))
        sets = {frozenset(name for name, _ in pairs) for pairs in self._latest}
        own = (frozenset((n, instance[n]) for n in names if n in instance) for names in sets)
        return max(self._unknown, max((self._latest.get(each, -1) for each in own), default=-1))

    def of(self, instance: Mapping[str, str], names: frozenset[str]) -> frozenset[str]:
        """Return those of some slices that concern an instance."""
        keys = ((name, self._key(name)) for name in names)
        return frozenset(name for name, key in keys if key is None or key.items() <= instance.items())


def part_of(instance: Mapping[str, str]) -> str:
    """Return what stands for an instance in the name of a subject.

    Example:
        >>> part_of({"day": "2024-05-01", "shop": "7"})
        'day=2024-05-01,shop=7'
    """
    return ",".join(f"{name}={text}" for name, text in sorted(instance.items()))


def last_builds(builds: Iterable[RecordedBuild]) -> list[RecordedBuild]:
    """Return the builds that count: of those that replace the rows at the same places, only the last one."""
    last: dict[object, RecordedBuild] = {}
    for build in builds:
        place = build.key if build.is_of_its_own else frozenset(build.writes)
        if place not in last or last[place].order < build.order:
            last[place] = build
    return list(last.values())


@dataclass
class BuildMarks:
    """Looks at what builds have read and written.

    Attributes:
        builds: Returns the builds that count; it is called once these are needed.
        histories: The logs of the tables.
        chains: The chains of entities that were observed already, by what commands call them.
        with_spark: Whether Spark is asked for what can't be looked at without it.
    """

    app: App
    builds: Callable[[], Iterable[RecordedBuild]]
    histories: TableHistories
    chains: Mapping[str, SliceChain] = field(default_factory=dict)
    with_spark: bool = False
    _marks: dict[Resource, str] = field(default_factory=dict)
    _in_bronze: dict[Resource, bool] = field(default_factory=dict)

    def recovered(self, build: RecordedBuild) -> RecordedBuild:
        """Return the build of an append that was cut off after its rows were there as one that is done."""
        if build.state is not BuildState.BEGUN or build.append is None:
            return build
        output = {}
        for place in build.writes:
            history = self.histories.of(place)
            version = None if history is None else history.version_of_append(build.append)
            if history is not None and version is not None:
                output[place] = f"{history.id}@{version}"
        return replace(build, state=BuildState.DONE, output=output) if output else build

    def output(
        self, build: RecordedBuild, job: Job, definition: str, makers: Mapping[str, frozenset[str]]
    ) -> Output:
        """Return the facts of what a build has made: its marks as they were, and as they are now.

        Args:
            build: The build.
            job: The job whose instance it is.
            definition: The digest of what is declared now.
            makers: The entities and targets that make the places that it reads, by the names of these.
        """
        is_done = build.state in (BuildState.DONE, BuildState.WITHDRAWN)
        text = ", ".join(mark for _, mark in sorted(build.output.items(), key=str))
        recorded = {str(each): mark for each, mark in build.inputs.items()}
        return Output(
            Subject(build.target, part_of(build.parameters), Kind.TARGET),
            definition,
            {
                str(each): self.input_now(each, mark, job, build.parameters)
                for each, mark in build.inputs.items()
            },
            mark=text if self.held(build) else None,
            build=Build(build.definition, recorded, text if is_done else None),
            is_withdrawn=build.state is BuildState.WITHDRAWN,
            makers=makers,
            unseen=tuple(sorted(str(each) for each in build.inputs if self.now(each) == UNSEEN)),
            job=job.name,
            instance=build.parameters,
        )

    def input_now(self, place: Resource, recorded: str, job: Job, instance: Mapping[str, str]) -> str | None:
        """Return the present mark of what an instance has read: the recorded one if nothing has changed."""
        now = self.now(place)
        if now == recorded or UNSEEN in (now, recorded):
            return recorded
        if now == ABSENT:
            return None
        was, is_ = version_of(recorded), version_of(now)
        if was is None or is_ is None:
            return now
        silver = self.silver.get(place)
        if was[0] != is_[0] and (silver is None or was[0] not in silver.former_ids):
            return now
        if silver is not None:
            return now if silver.last_change(job, instance) > was[1] else recorded
        history = self.histories.of(place)
        has_changed = history is None or history.has_changed(was[1], dict(place.partition))
        return now if has_changed else recorded

    def held(self, build: RecordedBuild) -> bool:
        """Return whether what a build has written is there, whatever others have done to parts of it."""
        return build.state is BuildState.DONE and all(self._is_held(*each) for each in build.output.items())

    def _is_held(self, place: Resource, mark: str) -> bool:
        now, was = self.now(place), version_of(mark)
        if self._is_as_left(place, mark):
            return True
        if was is None or place.category != "file":
            return now != ABSENT
        history = self.histories.of(place)
        is_same = history is not None and history.id == was[0] and history.version >= was[1]
        return history is not None and is_same and history.holds(was[1], dict(place.partition))

    def is_filled(self, place: Resource) -> bool:
        """Return whether rows are at a place, as far as that is known of it as a whole."""
        if place.partition or self.now(place) in (ABSENT, UNSEEN):
            return False
        history = self.histories.of(place)
        return history is None or history.is_filled

    def foreign(self, build: RecordedBuild, *, is_append: bool) -> int | str:
        """Return what others have made of a build that is held, as in `Output`; an empty text for nothing."""
        for place, mark in build.output.items():
            if self._is_as_left(place, mark):
                continue
            was = version_of(mark)
            if was is None:
                if not is_append and self.now(place) not in self._left.get(place, ()):
                    return self.now(place)
            elif (history := self.histories.of(place)) is not None:
                version = history.foreign_since(was[1], self._own_versions.get(history.id, frozenset()))
                if version is not None:
                    return version
        return ""

    def _is_as_left(self, place: Resource, mark: str) -> bool:
        """Return whether a place is as a build has left it, as far as that is known."""
        now = self.now(place)
        return UNSEEN in (now, mark) or now == mark or self.is_in_bronze(place)

    def is_in_bronze(self, place: Resource) -> bool:
        """Return whether a place is a slice, which may leave bronze, and may be corrected."""
        whole = place.whole
        if whole not in self._in_bronze:
            self._in_bronze[whole] = any(bronze.contains(whole) for bronze in self._bronze)
        return self._in_bronze[whole]

    @cached_property
    def _bronze(self) -> tuple[Resource, ...]:
        settings = self.app.project.lake
        return tuple(
            Resource.file(e.places(settings).slices.folder) for e in self.app.project.entities.values()
        )

    @cached_property
    def _left(self) -> Mapping[Resource, set[str]]:
        """The marks with which builds, of any instance, have left the places that they wrote."""
        found: dict[Resource, set[str]] = {}
        for place, mark in (each for build in self.builds() for each in build.output.items()):
            found.setdefault(place, set()).add(mark)
        return found

    @cached_property
    def _own_versions(self) -> Mapping[str, frozenset[int]]:
        """The versions that builds have written, by the identity of the table."""
        found: dict[str, set[int]] = {}
        for mark in (mark for build in self.builds() for mark in build.output.values()):
            if (written := version_of(mark)) is not None:
                found.setdefault(written[0], set()).add(written[1])
        return {name: frozenset(versions) for name, versions in found.items()}

    @cached_property
    def silver(self) -> Mapping[Resource, SilverChanges]:
        """The changes of silver tables, by their places."""
        found = {}
        for entity in self.app.project.entities.values():
            chain = self.chains.get(entity.called) or self.app.chain(entity)
            place = table_resource(entity.places(self.app.project.lake).silver)
            found[place] = SilverChanges(self.app.project, chain)
        return found

    def now(self, place: Resource) -> str:
        """Return the present mark of a place; of a partition, that of its table."""
        whole = place.whole
        if whole not in self._marks:
            self._marks[whole] = mark_of(self.app.lake, whole, with_spark=self.with_spark)
        return self._marks[whole]
