"""How the builds of a run's instances stand, by the same marks as the plan of what is due."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING

from lakewright.due.plan import Code, Reason
from lakewright.errors import LakewrightError
from lakewright.lake.history import TableHistories
from lakewright.manifest.journal import BUILD
from lakewright.run.builds import BuildState, RecordedBuild, build_key, marked_builds, read_builds
from lakewright.run.last_build import NOTHING, LastBuild
from lakewright.usecases.due.build_marks import BuildMarks, last_builds
from lakewright.usecases.due.words import reason_text

if TYPE_CHECKING:
    from lakewright.app import App
    from lakewright.manifest.journal import Journal
    from lakewright.plan.resource import Resource
    from lakewright.spec.models.job import Job

__all__ = ["RecordedBuilds"]

FEW = 1000
"""The largest number of builds that are read at once, whatever a run asks for."""


@dataclass
class RecordedBuilds:
    """Tells how builds stand.

    If there are many, they are looked up one by one, and all are read only if one seems to be stale.

    Attributes:
        journal: The records of the project.
    """

    app: App
    journal: Journal

    @cached_property
    def _first(self) -> list[RecordedBuild]:
        """The first builds: all if these are few."""
        return list(islice(read_builds(self.journal, self.app.project.name), FEW + 1))

    @cached_property
    def _last(self) -> Mapping[str, RecordedBuild]:
        """The builds that count, by their keys."""
        every = self._first if self._are_few else read_builds(self.journal, self.app.project.name)
        return {each.key: each for each in last_builds(every)}

    @property
    def _are_few(self) -> bool:
        return len(self._first) <= FEW

    @cached_property
    def _marked(self) -> Mapping[str, RecordedBuild]:
        return {each.key: each for each in marked_builds(self.journal, self.app.project.name)}

    @cached_property
    def _marks(self) -> BuildMarks:
        return BuildMarks(self.app, (), TableHistories(self.app.lake))

    @cached_property
    def _written(self) -> frozenset[Resource]:
        return frozenset(place.whole for build in self._last.values() for place in build.writes)

    def _build(self, target: str, parameters: Mapping[str, str]) -> RecordedBuild | None:
        key = build_key(self.app.project.name, target, self.journal.hide_secrets(parameters))
        if self._are_few:
            return self._last.get(key)
        document = self.journal.store.document(BUILD, key)
        return self._marked.get(key) if document is None else RecordedBuild.from_json(document.value)

    def of(self, job: Job, target: str, parameters: Mapping[str, str]) -> LastBuild:
        """Return how the last build of an instance stands.

        Only what entities and targets make counts as changed: whether files that somebody else writes make an
        instance dirty is for its build policy to say. Rows that were appended are never stale by themselves.
        Of instances that replace the same rows, only the last build counts.
        """
        build = self._build(target, parameters)
        if build is None or build.state is BuildState.WITHDRAWN:
            return NOTHING
        try:
            found = self._of_build(job, build)
        except LakewrightError:  # observing the target raises it
            return NOTHING
        return found if found.stale is None or build.key in self._last else NOTHING

    def _of_build(self, job: Job, build: RecordedBuild) -> LastBuild:
        recovered = self._marks.recovered(build)
        if recovered.state is not BuildState.DONE:
            is_unsure = build.is_append and build.may_have_added
            return LastBuild(reason_text(Reason(Code.CUT_OFF)), build.append, is_unsure=is_unsure)
        begun = build.append if build.state is BuildState.BEGUN else None
        if not self._marks.held(recovered):
            return LastBuild(reason_text(Reason(Code.OUTPUT_GONE)), begun, order=build.order)
        moved = [] if build.is_append else sorted(self._moved(job, recovered))
        stale = reason_text(Reason(Code.INPUT_MOVED, {"places": moved})) if moved else None
        return LastBuild(stale, begun, holds_rows=True, order=build.order)

    def appended(self, job: Job, parameters: Mapping[str, str]) -> frozenset[str]:
        """Return the targets of an instance that append, and whose rows are there, or may be."""
        found = set()
        for name in job.targets:
            build = self._build(name, parameters)
            if build is not None and build.is_append:
                last = self.of(job, name, parameters)
                found |= {name} if last.holds_rows or last.is_unsure else set()
        return frozenset(found)

    def _moved(self, job: Job, build: RecordedBuild) -> set[str]:
        """Return the names of what has changed since a build has read it."""
        found = set()
        for place, mark in build.inputs.items():
            if self._marks.input_now(place, mark, job, build) == mark:
                continue
            silver = self._marks.silver.get(place)
            if silver is not None:
                found.add(silver.chain.entity.called)
            elif any(each.intersects(place) for each in self._written):
                found.add(place.name)
        return found

    def within(self, places: Collection[Resource]) -> Mapping[str, list[Mapping[str, str]]]:
        """Return the builds whose rows are all in some places: the instances, by the names of targets."""
        found: dict[str, list[Mapping[str, str]]] = {}
        for build in self._last.values():
            if build.is_within(places):
                found.setdefault(build.target, []).append(build.parameters)
        return found
