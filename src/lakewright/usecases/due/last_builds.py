"""How the builds of a run's instances stand, by the same marks as the plan of what is due."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING

from lakewright.due.outputs import stale
from lakewright.due.plan import Code
from lakewright.errors import LakewrightError
from lakewright.lake.history import UNSEEN, TableHistories
from lakewright.manifest.journal import BUILD
from lakewright.plan.last_build import NOTHING, LastBuild
from lakewright.plan.reason import Code as StepCode
from lakewright.run.builds import (
    BuildState,
    LastBuilds,
    RecordedBuild,
    build_key,
    marked_builds,
    read_builds,
)
from lakewright.spec.reason import Reason
from lakewright.usecases.due.build_marks import BuildMarks, last_builds

if TYPE_CHECKING:
    from lakewright.app import App
    from lakewright.due.facts import Output
    from lakewright.manifest.journal import Journal
    from lakewright.plan.resource import Resource
    from lakewright.spec.models.job import Job
    from lakewright.targets.definition import BuildDefinition


FEW = 1000
"""The largest number of builds that are read at once, whatever a run asks for."""


@dataclass
class RecordedBuilds(LastBuilds):
    """Reports the state of builds.

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

    @property
    def _every(self) -> Iterable[RecordedBuild]:
        return self._first if self._are_few else read_builds(self.journal, self.app.project.name)

    @cached_property
    def _last(self) -> Mapping[str, RecordedBuild]:
        """The builds that count, by their keys."""
        return {each.key: each for each in last_builds(self._every)}

    @property
    def _are_few(self) -> bool:
        return len(self._first) <= FEW

    @cached_property
    def _marked(self) -> Mapping[str, RecordedBuild]:
        return {each.key: each for each in marked_builds(self.journal, self.app.project.name)}

    @cached_property
    def _marks(self) -> BuildMarks:
        return BuildMarks(self.app, tuple, TableHistories(self.app.lake))

    @cached_property
    def _exact(self) -> BuildMarks:
        """The marks for those that are built whenever any input has changed."""
        return replace(self._marks, with_spark=True, _marks={})

    @cached_property
    def _written(self) -> frozenset[Resource]:
        return frozenset(place.whole for build in self._last.values() for place in build.writes)

    def _build(self, target: str, parameters: Mapping[str, str]) -> RecordedBuild | None:
        key = build_key(self.app.project.name, target, self.journal.hide_secrets(parameters))
        if self._are_few:
            return self._last.get(key)
        document = self.journal.store.document(BUILD, key)
        return self._marked.get(key) if document is None else RecordedBuild.from_json(document.value)

    def of(
        self,
        job: Job,
        target: str,
        parameters: Mapping[str, str],
        definition: BuildDefinition | None = None,
        compared: frozenset[Resource] | None = None,
    ) -> LastBuild:
        """Return how the last build of an instance stands.

        Only what entities and targets make counts as changed: whether files that somebody else writes make an
        instance dirty is for its build policy to say. Rows that were appended are never stale by themselves.
        Of instances that replace the same rows, only the last build counts.

        Args:
            job: The job.
            target: The name of the target.
            parameters: The parameters of the instance.
            definition: What is declared now of its rows; None if that is not asked.
            compared: What it writes, if it is built whenever its definition or any input has changed.
        """
        build = self._build(target, parameters)
        changed = NOTHING.changed if compared is None else None
        try:
            if compared is not None and definition is not None:
                changed = self._changed(job, self._shared(build, target, compared), parameters, definition)
            if build is None or build.state is BuildState.WITHDRAWN:
                return replace(NOTHING, changed=changed)
            found = self._of_build(job, build)
        except LakewrightError:  # observing the target raises it
            return NOTHING
        if found.stale is not None and build.key not in self._last:
            found = NOTHING
        is_redefined = definition is not None and build.definition not in ("", definition.digest)
        return replace(found, changed=changed, is_redefined=is_redefined)

    def _of_build(self, job: Job, build: RecordedBuild) -> LastBuild:
        recovered = self._marks.recovered(build)
        made = {each for each in build.inputs if not build.is_append and self._makers(each)}
        known = replace(recovered, inputs={each: build.inputs[each] for each in made})
        reason = stale(self._output(self._marks, job, known, build.definition))
        is_done = recovered.state is BuildState.DONE
        return LastBuild(
            reason,
            begun=None if build.state is BuildState.DONE else build.append,
            holds_rows=is_done and (reason is None or reason.code is not Code.OUTPUT_GONE),
            is_unsure=build.is_append and not is_done and build.may_have_added,
            order=build.order if is_done else "",
        )

    def _changed(
        self,
        job: Job,
        build: RecordedBuild | None,
        parameters: Mapping[str, str],
        definition: BuildDefinition,
    ) -> Reason | None:
        """Return why an instance is not built from what is declared and there now; None if it is."""
        if build is None or build.state is BuildState.WITHDRAWN:
            return NOTHING.changed
        own = self.journal.hide_secrets(parameters)
        if any(own[name] != build.parameters.get(name) for name in own.keys() & definition.names):
            return NOTHING.changed
        output = self._output(self._exact, job, self._exact.recovered(build), definition.digest)
        if (reason := stale(output)) is not None:
            return reason
        is_unseen = output.unseen or UNSEEN in build.inputs.values()
        return Reason(StepCode.UNSEEN_INPUTS) if is_unseen else None

    def _shared(
        self, build: RecordedBuild | None, target: str, places: frozenset[Resource]
    ) -> RecordedBuild | None:
        """Return the last build of a target into some places, of any instance but those of their own."""
        if build is not None and build.is_of_its_own:
            return build
        return self._by_place.get((target, places), build)

    @cached_property
    def _by_place(self) -> Mapping[tuple[str, frozenset[Resource]], RecordedBuild]:
        own = sorted(
            (each for each in self._every if not each.is_of_its_own or not each.writes),
            key=lambda each: each.order,
        )
        return {(each.target, frozenset(each.writes)): each for each in own}

    def _output(self, marks: BuildMarks, job: Job, build: RecordedBuild, definition: str) -> Output:
        makers = {str(each): self._makers(each) for each in build.inputs}
        return marks.output(build, job, definition, makers)

    def appended(self, job: Job, parameters: Mapping[str, str]) -> frozenset[str]:
        """Return the targets of an instance that append, and whose rows are there, or may be."""
        found = set()
        for name in job.targets:
            build = self._build(name, parameters)
            if build is not None and build.is_append:
                last = self.of(job, name, parameters)
                found |= {name} if last.holds_rows or last.is_unsure else set()
        return frozenset(found)

    def _makers(self, place: Resource) -> frozenset[str]:
        """Return the entity that makes a place, or the place itself if a target builds it; else nothing."""
        if (silver := self._marks.silver.get(place)) is not None:
            return frozenset({silver.chain.entity.called})
        is_built = any(each.intersects(place) for each in self._written)
        return frozenset({place.name} if is_built else ())

    def within(self, places: Collection[Resource]) -> Mapping[str, list[Mapping[str, str]]]:
        """Return the builds whose rows are all in some places: the instances, by the names of targets."""
        found: dict[str, list[Mapping[str, str]]] = {}
        for build in self._last.values():
            if build.is_within(places):
                found.setdefault(build.target, []).append(build.parameters)
        return found
