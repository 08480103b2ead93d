"""How the builds of a run's instances stand, by the same marks as the plan of what is due."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from lakewright.due.plan import Code, Reason
from lakewright.errors import LakewrightError
from lakewright.run.builds import BuildState, build_key, read_builds
from lakewright.run.last_build import NOTHING, LastBuild
from lakewright.usecases.due.build_marks import BuildMarks, last_builds
from lakewright.usecases.due.words import reason_text

if TYPE_CHECKING:
    from lakewright.app import App
    from lakewright.manifest.journal import Journal
    from lakewright.plan.resource import Resource
    from lakewright.run.builds import RecordedBuild
    from lakewright.spec.models.job import Job

__all__ = ["RecordedBuilds"]


@dataclass
class RecordedBuilds:
    """Tells how builds stand; what the manifest has of them is read once.

    Attributes:
        journal: The records of the project.
    """

    app: App
    journal: Journal

    @cached_property
    def _builds(self) -> Mapping[str, RecordedBuild]:
        builds = last_builds(read_builds(self.journal, self.app.project.name))
        return {each.key: each for each in builds}

    @cached_property
    def _marks(self) -> BuildMarks:
        return BuildMarks(self.app, self._builds.values())

    @cached_property
    def _written(self) -> frozenset[Resource]:
        return frozenset(place.whole for build in self._builds.values() for place in build.writes)

    def of(self, job: Job, target: str, parameters: Mapping[str, str]) -> LastBuild:
        """Return how the last build of an instance stands.

        Only what entities and targets make counts as changed: whether files that somebody else writes make an
        instance dirty is for its build policy to say. Rows that were appended are never stale by themselves.
        """
        key = build_key(self.app.project.name, target, self.journal.hide_secrets(parameters))
        build = self._builds.get(key)
        if build is None or build.state is BuildState.WITHDRAWN:
            return NOTHING
        try:
            return self._last_build(job, build)
        except LakewrightError:  # observing the target raises it
            return NOTHING

    def _last_build(self, job: Job, build: RecordedBuild) -> LastBuild:
        recovered = self._marks.recovered(build)
        if recovered.state is not BuildState.DONE:
            is_unsure = build.is_append and build.append is None and build.state is BuildState.BEGUN
            return LastBuild(reason_text(Reason(Code.CUT_OFF)), build.append, is_unsure=is_unsure)
        held, _ = self._marks.held(recovered, is_append=build.is_append)
        begun = build.append if build.state is BuildState.BEGUN else None
        if not held:
            return LastBuild(reason_text(Reason(Code.OUTPUT_GONE)), begun, order=build.order)
        moved = [] if build.is_append else sorted(map(str, self._moved(job, recovered)))
        stale = reason_text(Reason(Code.INPUT_MOVED, {"places": moved})) if moved else None
        return LastBuild(stale, begun, holds_rows=True, order=build.order)

    def appended(self, job: Job, parameters: Mapping[str, str]) -> frozenset[str]:
        """Return the targets of an instance that append, and whose rows are there, or may be."""
        hidden = dict(self.journal.hide_secrets(parameters))
        own = (each for each in self._builds.values() if each.is_append and dict(each.parameters) == hidden)
        names = (each.target for each in own if each.target in job.targets)
        return frozenset(name for name in names if self.of(job, name, parameters).holds_rows)

    def _moved(self, job: Job, build: RecordedBuild) -> set[str]:
        """Return the names of what has changed since a build has read it."""
        found = set()
        for place, mark in build.inputs.items():
            silver = self._marks.silver.get(place)
            is_made = silver is not None or any(each.intersects(place) for each in self._written)
            if is_made and self._marks.input_now(place, mark, job, build) != mark:
                found.add(silver.chain.entity.called if silver is not None else place.name)
        return found

    def within(self, places: Collection[Resource]) -> Mapping[str, list[Mapping[str, str]]]:
        """Return the builds whose rows are all in some places: the instances, by the names of targets."""
        found: dict[str, list[Mapping[str, str]]] = {}
        for build in self._builds.values():
            is_within = all(any(place.contains(each) for place in places) for each in build.writes)
            if build.writes and is_within and build.state is not BuildState.WITHDRAWN:
                found.setdefault(build.target, []).append(build.parameters)
        return found
