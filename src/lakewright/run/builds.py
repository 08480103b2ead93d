"""Builds: what each instance of a target was last built from, recorded as it is built.

A build is to gold what a slice is to silver. Whether an instance is stale follows from its build and from
what is there now; nothing else has to be remembered.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from lakewright.errors import VerificationError
from lakewright.lake.commit import OF_BUILD
from lakewright.lake.history import mark_of, version_of
from lakewright.manifest.journal import BUILD, CHECK, TAINT, Journal, Run, unsettled
from lakewright.manifest.store import Put
from lakewright.plan.last_build import NOTHING, LastBuild
from lakewright.plan.phase import Phase
from lakewright.plan.resource import Resource
from lakewright.plan.status import Planned, Status

if TYPE_CHECKING:
    from lakewright.lake.history import TableHistory
    from lakewright.lake.lake import Lake
    from lakewright.plan.step import Plan, Step
    from lakewright.run.result import TargetResult
    from lakewright.spec.models.job import Job
    from lakewright.targets.definition import BuildDefinition


_REMOVERS = frozenset({"truncate", "drop", "deleteFile"})
"""Kinds of targets whose work is to remove what others have built."""


class BuildState(StrEnum):
    """How far a build has come; `WITHDRAWN` if a person has emptied or removed what it had written."""

    WANTED = "wanted"
    BEGUN = "begun"
    DONE = "done"
    WITHDRAWN = "withdrawn"


@dataclass(frozen=True, slots=True)
class RecordedBuild:
    """The last build of an instance of a target.

    Attributes:
        parameters: The parameters of the instance, with secrets hidden.
        definition: The digest of what was declared of the rows.
        writes: The places that it writes.
        inputs: The mark of each place that it reads.
        output: The mark of each place that it has written; empty unless it is done.
        append: The identity of an append that it has begun, by which the table shows whether it is done.
        is_append: Whether it adds its rows to those that are there.
        updates_rows: Whether it keeps the rows that other instances have written into the same places.
        order: A text that sorts builds by the time at which they were recorded.
    """

    project: str
    job: str
    target: str
    parameters: Mapping[str, str]
    definition: str
    state: BuildState
    writes: tuple[Resource, ...] = ()
    inputs: Mapping[Resource, str] = field(default_factory=dict)
    output: Mapping[Resource, str] = field(default_factory=dict)
    append: str | None = None
    is_append: bool = False
    updates_rows: bool = False
    order: str = ""

    @property
    def key(self) -> str:
        """The key of its document."""
        return build_key(self.project, self.target, self.parameters)

    def is_within(self, places: Collection[Resource]) -> bool:
        """Return whether it stands, and all that it writes is in some places."""
        is_inside = all(any(place.contains(each) for place in places) for each in self.writes)
        return bool(self.writes) and is_inside and self.state is not BuildState.WITHDRAWN

    @property
    def is_of_its_own(self) -> bool:
        """Whether no build of another instance replaces what it has written."""
        return self.is_append or self.updates_rows or not self.writes

    @property
    def may_have_added(self) -> bool:
        """Whether, if it is an append, it was cut off and no table shows whether its rows are there."""
        return self.state is BuildState.BEGUN and self.append is None

    @property
    def put(self) -> Put:
        """The put of its document."""
        return Put(BUILD, self.key, self.value)

    @property
    def value(self) -> dict[str, Any]:
        """The value of its document."""
        return {
            **{name: getattr(self, name) for name in _AS_THEY_ARE},
            "updates_rows": self.updates_rows,
            "parameters": dict(self.parameters),
            "state": self.state.value,
            "writes": [_place(each) for each in self.writes],
            "inputs": [[_place(each), mark] for each, mark in self.inputs.items()],
            "output": [[_place(each), mark] for each, mark in self.output.items()],
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> RecordedBuild:
        """Return the build of a document's value."""
        return cls(
            **{name: value[name] for name in _AS_THEY_ARE},
            updates_rows=value.get("updates_rows", False),  # earlier versions did not record it
            parameters=value["parameters"],
            state=BuildState(value["state"]),
            writes=tuple(map(_resource, value["writes"])),
            inputs={_resource(place): mark for place, mark in value["inputs"]},
            output={_resource(place): mark for place, mark in value["output"]},
        )


@dataclass(frozen=True, slots=True)
class RecordedCheck:
    """The last verdict of VERIFY on an instance of a target.

    Attributes:
        parameters: The parameters of the instance, with secrets hidden.
        is_good: Whether nothing was found.
        inputs: The mark of each place that was checked.
        order: A text that sorts checks by the time at which they were recorded.
    """

    project: str
    job: str
    target: str
    parameters: Mapping[str, str]
    is_good: bool
    inputs: Mapping[Resource, str] = field(default_factory=dict)
    order: str = ""

    @property
    def put(self) -> Put:
        """The put that records it."""
        inputs = [[_place(each), mark] for each, mark in self.inputs.items()]
        value = {name: getattr(self, name) for name in ("project", "job", "target", "is_good", "order")}
        key = build_key(self.project, self.target, self.parameters)
        return Put(CHECK, key, {**value, "parameters": dict(self.parameters), "inputs": inputs})

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> RecordedCheck:
        """Return the check of a document's value."""
        return cls(**{**value, "inputs": {_resource(place): mark for place, mark in value["inputs"]}})


def read_checks(journal: Journal, project: str) -> Iterator[RecordedCheck]:
    """Yield the last check of each instance of a project's targets."""
    for document in journal.store.documents(CHECK, prefix=f"{project}/"):
        check = RecordedCheck.from_json(document.value)
        if check.project == project:
            yield check


_AS_THEY_ARE = ("project", "job", "target", "definition", "append", "is_append", "order")


def _place(resource: Resource) -> list[Any]:
    return [resource.category, resource.name, [list(pair) for pair in resource.partition]]


def _resource(value: Sequence[Any]) -> Resource:
    category, name, partition = value
    return Resource(category, name, tuple((column, text) for column, text in partition))


def recording(builds: Iterable[RecordedBuild]) -> tuple[Put, ...]:
    """Return the puts that record builds, whose targets are then not settled any more."""
    listed = list(builds)
    targets = dict.fromkeys((each.project, each.target) for each in listed)
    return (*(each.put for each in listed), *(unsettled(*each) for each in targets))


def build_key(project: str, target: str, parameters: Mapping[str, str]) -> str:
    """Return the key of the document of an instance of a target."""
    return f"{_prefix(project, target)}{instance_digest(parameters)[:32]}"


def _prefix(project: str, target: str) -> str:
    """Return what the keys of all instances of a target begin with."""
    return f"{project}/{_digest(target)[:16]}/"


def instance_digest(parameters: Mapping[str, str]) -> str:
    """Return a text that stands for an instance in the keys of its documents."""
    return _digest(json.dumps(sorted(parameters.items())))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def read_builds(
    journal: Journal, project: str, targets: Collection[str] | None = None
) -> Iterator[RecordedBuild]:
    """Yield the last build of each instance of a project's targets, or of some of them.

    What earlier versions have marked as to be built again counts as begun, until a build of it is recorded.
    """
    known = set()
    prefixes = [f"{project}/"] if targets is None else [_prefix(project, name) for name in targets]
    for prefix in prefixes:
        for document in journal.store.documents(BUILD, prefix=prefix):
            if document.value["project"] == project:
                known.add(document.key)
                yield RecordedBuild.from_json(document.value)
    for build in marked_builds(journal, project):
        if build.key not in known and (targets is None or build.target in targets):
            yield build


def marked_builds(journal: Journal, project: str) -> Iterator[RecordedBuild]:
    """Yield what earlier versions have marked as to be built again."""
    for document in journal.store.documents(TAINT, prefix=f"{project}/"):
        place = document.value["place"]
        if place["phase"] == Phase.BUILD.value and place["project"] == project:
            yield RecordedBuild(project, "", place["target"], place["parameters"], "", BuildState.BEGUN)


def logged_builds(history: TableHistory, project: str) -> Iterator[RecordedBuild]:
    """Yield the builds that are in the log of a table, of commits on which its last version builds."""
    for commit in history.standing:
        value = commit.content.get(OF_BUILD)
        if isinstance(value, Mapping) and value.get("project") == project:
            try:
                build = RecordedBuild.from_json(value)
            except (KeyError, TypeError, ValueError):  # of another version of Lakewright
                continue
            mark = f"{history.id}@{commit.version}"
            yield replace(build, state=BuildState.DONE, output=dict.fromkeys(build.writes, mark))


@dataclass(slots=True)
class BuildRecorder:
    """Records the builds of a run, and the verdicts on them.

    What an instance reads is looked at before anything reads it. A place that changes while it is read makes
    the instance stale, so that nothing is missed.

    Attributes:
        refresh: Discards what an instance has read of places already.
    """

    journal: Journal
    run: Run
    plan: Plan
    lake: Lake
    refresh: Callable[[int, frozenset[Resource]], None] = lambda *_: None
    _seen: dict[int, dict[Resource, str]] = field(default_factory=dict, init=False)
    _begun: dict[tuple[int, str], RecordedBuild] = field(default_factory=dict, init=False)
    _checked: dict[tuple[int, str], Mapping[Resource, str]] = field(default_factory=dict, init=False)

    def wanted(self) -> tuple[Put, ...]:
        """Return the puts that record, as the run starts, what it is to build.

        Of what is blocked, or is an append that was done before, the last build must be known: it stays.
        """
        return recording(self._wanted())

    def _wanted(self) -> Iterator[RecordedBuild]:
        for index, instance in enumerate(self.plan.instances):
            for phase in instance.phases:
                for step in phase.steps:
                    if step.status is Planned.CLEAN or step.definition is None:
                        continue
                    build = self._build(index, step, BuildState.WANTED)
                    is_sure = step.status is Planned.WOULD_RUN and step.append is None
                    if is_sure or self.journal.store.document(BUILD, build.key) is None:
                        yield build

    def begin(self, index: int, step: Step) -> Sequence[Put]:
        """Look at what a step reads; return the puts that record that it begins to add rows."""
        if step.phase is Phase.VERIFY:
            self._checked[index, step.target] = self._inputs(index, step)
        if step.definition is None:
            return ()
        inputs = self._inputs(index, step)
        build = replace(self._build(index, step, BuildState.BEGUN), inputs=inputs)
        self._begun[index, step.target] = build
        return () if step.append is None else recording([build])

    def _inputs(self, index: int, step: Step) -> Mapping[Resource, str]:
        """Return the marks of what a step reads, looked at before it reads it."""
        seen = self._seen.setdefault(index, {})
        new = frozenset(each for each in step.requires if each not in seen)
        self.refresh(index, new)
        seen.update((each, mark_of(self.lake, each, with_spark=True)) for each in sorted(new, key=str))
        return {each: seen[each] for each in self._named(step.requires)}

    def content(self, index: int, step: Step) -> Mapping[str, Any] | None:
        """Return the build that a step has begun, as its commits carry it; None if it makes none."""
        build = self._begun.get((index, step.target)) if step.phase is Phase.BUILD else None
        return None if build is None else build.value

    def end(self, index: int, step: Step, result: TargetResult) -> Sequence[Put]:
        """Return the puts that record what a step has built, removed, or found."""
        if step.phase is Phase.VERIFY:
            return self._verdict(index, step, result)
        if step.status is Planned.CLEAN or result.is_undone or result.status is Status.FAILED:
            return ()
        changed = step.provides
        for each in [each for each in self._seen.get(index, {}) if any(map(each.intersects, changed))]:
            del self._seen[index][each]
        if step.phase.is_cleanup or step.kind in _REMOVERS:
            return recording(self._withdrawn(changed))
        build = self._begun.pop((index, step.target), None) if step.phase is Phase.BUILD else None
        return () if build is None else recording([self._done(build, result)])

    def _verdict(self, index: int, step: Step, result: TargetResult) -> Sequence[Put]:
        """Return the put of a check; an error that is no verdict leaves the one before."""
        inputs = self._checked.pop((index, step.target), None)
        is_bad = result.error is not None and result.error.code == VerificationError.code
        if inputs is None or not (result.status.is_success or is_bad):
            return ()
        build = self._build(index, step, BuildState.WANTED)
        is_good = result.status.is_success
        check = RecordedCheck(
            build.project, build.job, build.target, build.parameters, is_good, inputs, build.order
        )
        return (check.put,)

    def _build(self, index: int, step: Step, state: BuildState) -> RecordedBuild:
        append = step.append_id(self.run.run_id, index)
        return RecordedBuild(
            self.run.project,
            self.run.job,
            step.target,
            self.journal.hide_secrets(self.plan.instances[index].parameters),
            step.definition or "",
            state,
            tuple(self._named(step.provides)),
            append=append,
            is_append=step.append is not None,
            updates_rows=step.updates_rows,
            order=f"{self.run.key} {index:08}",
        )

    def _named(self, places: Iterable[Resource]) -> list[Resource]:
        """Return places in order, without those whose names have a secret in them."""
        redact = self.journal.redactor.text
        return [each for each in sorted(places, key=str) if redact(str(each)) == str(each)]

    def _done(self, build: RecordedBuild, result: TargetResult) -> RecordedBuild:
        version = result.metrics.get("delta_version")
        output = {}
        for place in build.writes:
            mark = mark_of(self.lake, place, with_spark=True)
            table = version_of(mark)
            is_known = table is not None and isinstance(version, int)
            output[place] = f"{table[0]}@{version}" if is_known and table is not None else mark
        return replace(build, state=BuildState.DONE, output=output)

    def _withdrawn(self, places: Collection[Resource]) -> Iterator[RecordedBuild]:
        """Yield what others have built and is removed on purpose now."""
        for build in read_builds(self.journal, self.run.project) if places else ():
            if build.is_within(places):
                yield replace(build, state=BuildState.WITHDRAWN, output={})


class LastBuilds:
    """Reports the state of builds; by itself, as of a run without a manifest, that there are none."""

    def of(
        self,
        job: Job,
        target: str,
        parameters: Mapping[str, str],
        definition: BuildDefinition | None = None,
        compared: frozenset[Resource] | None = None,
    ) -> LastBuild:
        """Return how the last build of an instance stands.

        Args:
            job: The job.
            target: The name of the target.
            parameters: The parameters of the instance.
            definition: What is declared now of its rows; None if that is not asked.
            compared: What it writes, if it is built whenever its definition or any input has changed.
        """
        return NOTHING

    def within(self, places: Collection[Resource]) -> Mapping[str, list[Mapping[str, str]]]:
        """Return the builds whose rows are all in some places: the instances, by the names of targets."""
        return {}
