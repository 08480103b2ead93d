"""Whether builds are still made from what is there: the marks of what they read and wrote, as they are now.

Each table's log is read once, however many instances read or write it. Spark is not started.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from lakewright.due.facts import Build, Kind, Output, Subject
from lakewright.lake.place_marks import ABSENT, UNSEEN, mark_of, version_of
from lakewright.plan.resource import Resource
from lakewright.run.builds import BuildState, RecordedBuild
from lakewright.targets.lease import table_resource
from lakewright.usecases.due.silver_changes import SilverChanges
from lakewright.usecases.placed import chain_of

if TYPE_CHECKING:
    from lakewright.app import App
    from lakewright.lake.history import TableHistories
    from lakewright.slices.chain import SliceChain
    from lakewright.spec.models.job import Job

__all__ = ["BuildMarks", "last_builds", "part_of"]


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
        place = build.key if build.is_append or not build.writes else frozenset(build.writes)
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

    def foreign(self, build: RecordedBuild, *, is_append: bool) -> str:
        """Return what others have done to rows of a build that is held; an empty text for nothing."""
        for place, mark in build.output.items():
            if self._is_as_left(place, mark):
                continue
            was = version_of(mark)
            if was is None:
                if not is_append:
                    return self.now(place)
            elif (history := self.histories.of(place)) is not None:
                version = history.foreign_since(was[1], self._own_versions.get(history.id, frozenset()))
                if version is not None:
                    return str(version)
        return ""

    def _is_as_left(self, place: Resource, mark: str) -> bool:
        """Return whether a place is as a build has left it, as far as anybody can tell or has to."""
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
        return tuple(Resource.file(e.places(settings).bronze) for e in self.app.project.entities.values())

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
            chain = self.chains.get(entity.called) or chain_of(self.app, entity)
            place = table_resource(entity.places(self.app.project.lake).silver)
            found[place] = SilverChanges(self.app.project, chain)
        return found

    def now(self, place: Resource) -> str:
        """Return the present mark of a place; of a partition, that of its table."""
        whole = place.whole
        if whole not in self._marks:
            self._marks[whole] = mark_of(self.app.lake, whole, with_spark=self.with_spark)
        return self._marks[whole]
