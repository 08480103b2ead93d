"""Projects whose targets write into a dictionary instead of a lake, and runs of their jobs."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar

from pydantic import Field as Declared

from lakewright import connections
from lakewright.errors import Fault, TargetError
from lakewright.lake.lake import Lake
from lakewright.manifest.journal import BUILD, Journal
from lakewright.manifest.lease import Holder, Leases
from lakewright.manifest.ledger import Ledger
from lakewright.manifest.record import Agent, Author
from lakewright.plan.dirtiness import build_dirtiness
from lakewright.plan.last_build import NOTHING, LastBuild
from lakewright.plan.observation import Answer, Hold, Observation
from lakewright.plan.outcome import Outcome
from lakewright.plan.phase import Phase
from lakewright.plan.reason import note
from lakewright.plan.resource import Resource
from lakewright.plan.status import Planned, Status
from lakewright.plan.step import Append, Plan, Step
from lakewright.run import hooks
from lakewright.run.builds import BuildState, LastBuilds, RecordedBuild, build_key
from lakewright.run.job import JobRun
from lakewright.run.request import JobRequest
from lakewright.run.result import RunResult, TargetResult
from lakewright.spark.conf import SessionSettings
from lakewright.spec.definitions.registry import Registry
from lakewright.spec.loading.loader import load_project
from lakewright.spec.loading.settings import LoadOptions
from lakewright.spec.models.base import Texts
from lakewright.spec.models.job import Job
from lakewright.spec.reason import Reason
from lakewright.stores.memory import MemoryStore
from lakewright.targets.context import Context, TargetDefaults
from lakewright.targets.target import Target
from lakewright.workspace.workspace import Workspace

START = datetime(2022, 1, 1, tzinfo=UTC)
HOLDER = Holder("here", 1, "", "run", "me")
ALL_PHASES = tuple(phase.value.lower() for phase in Phase)

Done = tuple[str, Phase, str]
"""Day, phase and name of a step that was done."""


@dataclass
class World:
    """What the fakes find and change.

    Attributes:
        versions: By path, how often something was written there; 0 for an empty table.
        broken: Names of targets that fail in BUILD.
        held: Names of targets that an unresolved failure holds.
        inside: Steps that are being done now, for tests of what may not meet.
        appended: Identities of the appends that were done.
        meetings: Pairs of steps that were being done at the same time.
    """

    versions: dict[str, int] = field(default_factory=dict)
    broken: set[str] = field(default_factory=set)
    held: set[str] = field(default_factory=set)
    built: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    performed: list[Done] = field(default_factory=list)
    inside: list[tuple[Done, frozenset[Resource], frozenset[Resource]]] = field(default_factory=list)
    clashes: list[tuple[Done, Done]] = field(default_factory=list)
    most_at_once: int = 0
    appended: list[str] = field(default_factory=list)
    pause: float = 0.0
    act: Callable[[FakeTarget, Context, Phase], Outcome | None] = lambda target, context, phase: None
    lock: threading.Lock = field(default_factory=threading.Lock)

    @contextmanager
    def doing(self, done: Done, requires: frozenset[Resource], provides: frozenset[Resource]) -> Any:
        with self.lock:
            self.performed.append(done)
            for other, reads, writes in self.inside:
                if touch(provides, writes | reads) or touch(requires, writes):
                    self.clashes.append((other, done))
            self.inside.append((done, requires, provides))
            self.most_at_once = max(self.most_at_once, len(self.inside))
        time.sleep(self.pause)
        try:
            yield
        finally:
            with self.lock:
                self.inside.remove((done, requires, provides))


def is_within(path: str, whole: str) -> bool:
    return path == whole or path.startswith(f"{whole}/")


def touch(ours: frozenset[Resource], theirs: frozenset[Resource]) -> bool:
    return any(one.intersects(other) for one in ours for other in theirs)


class FakeTarget(Target):
    """Counts up in the world's dictionary what it writes."""

    world: ClassVar[World] = World()

    reads: Texts = ()
    writes: str = ""
    table: str = ""
    adds: str = ""
    in_phases: Texts = Declared(default=("build", "verify"), alias="phases")

    def phases(self) -> frozenset[Phase]:
        return frozenset(Phase(phase.upper()) for phase in self.in_phases)

    def builds_rows(self, workspace: Workspace) -> bool:
        return bool(self.writes)

    def requires(self, workspace: Workspace, phase: Phase) -> frozenset[Resource]:
        if phase is Phase.VERIFY:
            return frozenset({Resource.file(self.writes)}) if self.writes else frozenset()
        return frozenset(map(Resource.file, self.reads))

    def provides(self, workspace: Workspace, phase: Phase) -> frozenset[Resource]:
        if phase in (Phase.VALIDATE, Phase.VERIFY) or not self.writes:
            return frozenset()
        return frozenset(
            {Resource.file(self.whole if phase in (Phase.CREATE, Phase.DESTROY) else self.writes)}
        )

    @property
    def whole(self) -> str:
        """What CREATE makes and DESTROY removes; BUILD writes it or a part of it."""
        return self.table or self.writes

    def observe(self, context: Context) -> Observation:
        world = self.world
        hold = None
        if self.name in world.held:
            hold = Hold(Fault("a slice has failed", code="item_failed"), is_locked=False)
        return Observation(
            self.writes or self.name,
            exists=Answer.of(any(is_within(path, self.whole) for path in world.versions)),
            filled=Answer.of(world.versions.get(self.writes, 0) > 0),
            hold=hold,
        )

    def build_dirtiness(self, observation: Observation, settings: TargetDefaults) -> Any:
        policy = self.build_policy or settings.build_policy
        return build_dirtiness(policy, observation, is_partitioned=bool(self.writes))

    def append(self, workspace: Workspace, defaults: TargetDefaults) -> Append | None:
        return Append(self.adds == "once") if self.adds else None

    def has_appended(self, workspace: Workspace, append_id: str) -> bool:
        return append_id in self.world.appended

    def made_of(self) -> dict[str, Any]:
        return {
            "definition": self.model_dump_json(),
            **{p: self.world.versions.get(p, 0) for p in self.reads},
        }

    def execute(self, context: Context, phase: Phase) -> Outcome:
        workspace = context.workspace
        step = (workspace.scope.render("$day"), phase, self.name)
        with self.world.doing(step, self.requires(workspace, phase), self.provides(workspace, phase)):
            if (outcome := self.world.act(self, context, phase)) is not None:
                return outcome
            if phase is Phase.BUILD and self.name in self.world.broken:
                raise TargetError(f"{self.name} is broken")
            self.change(phase)
        return Outcome(metrics={"target_records": 1} if phase is Phase.BUILD else {})

    def change(self, phase: Phase) -> None:
        world = self.world
        with world.lock:
            if phase is Phase.CREATE:
                world.versions.setdefault(self.whole, 0)
            elif phase is Phase.BUILD:
                world.built[self.writes] = self.made_of()
                world.versions[self.writes] = world.versions.get(self.writes, 0) + 1
            elif phase is Phase.TRUNCATE:
                world.versions[self.writes] = 0
            elif phase is Phase.DESTROY:
                for path in [path for path in world.versions if is_within(path, self.whole)]:
                    del world.versions[path]


@dataclass
class Listening:
    """Remembers what it is told, and asks for an end when a test wants it."""

    signal: int | None = None
    told: list[str] = field(default_factory=list)

    def step_started(self, instance: int, step: Step) -> None:
        self.told.append(f"{instance} {step.phase} {step.target} began")

    def step_finished(self, instance: int, step: Step, result: TargetResult) -> None:
        self.told.append(f"{instance} {step.phase} {step.target} {result.status}")


class FakeBuilds(LastBuilds):
    """Tells of builds what is recorded of them; what they have written is there."""

    def __init__(self, bench: Bench) -> None:
        self.bench, self.journal = bench, bench.journal

    def of(self, job: Job, target: str, parameters: Mapping[str, str], *asked: Any) -> LastBuild:
        return replace(self._recorded(target, parameters), changed=self._changed(job, target, parameters))

    def _changed(self, job: Job, target: str, parameters: Mapping[str, str]) -> Reason | None:
        project = self.bench.project
        scope = project.job_scope(job, parameters)
        fake = Target.named(Workspace(project.within(scope), scope, self.bench.lake), target)
        assert isinstance(fake, FakeTarget)
        now, built = fake.made_of(), fake.world.built.get(fake.writes)
        if built is None:
            return NOTHING.changed
        changed = sorted(name for name in {*now, *built} if now.get(name) != built.get(name))
        return note(f"{changed[0]} has changed since the last build") if changed else None

    def _recorded(self, target: str, parameters: Mapping[str, str]) -> LastBuild:
        key = build_key("fake", target, self.journal.hide_secrets(parameters))
        document = self.journal.store.document(BUILD, key)
        if document is None:
            return NOTHING
        build = RecordedBuild.from_json(document.value)
        if build.state is BuildState.DONE:
            return LastBuild(holds_rows=True, order=build.order)
        is_unsure = build.is_append and build.append is None and build.state is BuildState.BEGUN
        return LastBuild(note("left undone"), begun=build.append, is_unsure=is_unsure)

    def within(self, places: Collection[Resource]) -> Mapping[str, list[Mapping[str, str]]]:
        return {}


class Bench:
    """A project of fakes, and runs of its job `daily`."""

    def __init__(
        self, folder: Path, targets: Mapping[str, Mapping[str, Any]], job: Mapping[str, Any] | None = None
    ) -> None:
        self.world = FakeTarget.world = World()
        self.folder = folder
        self.write(targets, job)
        self.store = MemoryStore()
        self.journal = Journal(self.store)
        self.number = 0

    def write(
        self,
        targets: Mapping[str, Mapping[str, Any]],
        job: Mapping[str, Any] | None = None,
        config: Sequence[str] = (),
    ) -> None:
        """Write the project anew and load it."""
        declared = {name: {"kind": "fake", **target} for name, target in targets.items()}
        daily = {"parameters": [{"name": "day", "type": "date"}], "targets": list(targets), **(job or {})}
        self.load({"targets": declared, "jobs": {"daily": daily}, "config": list(config)})

    def load(self, model: Mapping[str, Any]) -> None:
        """Write these sections and load the project; JSON is YAML, and YAML keeps its texts."""
        (self.folder / "project.yml").write_text("name: fake\nversion: '1'\nmodules: [model.yml]\n")
        (self.folder / "model.yml").write_text(json.dumps(model, indent=1))
        kinds = Registry(
            {
                "target": {"fake": FakeTarget},
                "hook": dict(hooks.KINDS),
                "connection": dict(connections.KINDS),
            },
        )
        self.project = load_project(self.folder, LoadOptions(kinds=kinds, environ={}))
        self.lake = Lake(self.project.lake, SessionSettings(self.folder))

    def job(self, phase: Phase, *arguments: str, signals: Listening | None = None, **options: Any) -> JobRun:
        request = JobRequest("daily", phase, arguments or ("day=2022-01-01",), **options)

        def context(workspace: Workspace) -> Context:
            return self.context(workspace, signals or Listening())

        return JobRun(
            project=self.project,
            lake=self.lake,
            journal=self.journal,
            request=request,
            context=context,
            last_builds=FakeBuilds(self),
            clock=self.clock,
            environ={"PATH": "/bin:/usr/bin"},
        )

    def clock(self) -> datetime:
        return START + timedelta(minutes=self.number)

    def context(self, workspace: Workspace, signals: Listening) -> Context:
        return Context(
            workspace=workspace,
            ledger=Ledger(self.store, Author(Agent("test")), ids=lambda: "id"),
            leases=Leases(self.store, HOLDER, lambda: "id"),
            clock=self.clock,
            run_id="run",
            say=print,
            is_stopping=lambda: signals.signal is not None,
        )

    def plan(self, phase: Phase, *arguments: str, **options: Any) -> Plan:
        return self.job(phase, *arguments, **options).plan()

    def run(
        self, phase: Phase, *arguments: str, listening: Listening | None = None, **options: Any
    ) -> RunResult:
        self.number += 1
        listening = listening or Listening()
        return self.job(phase, *arguments, signals=listening, **options).run(
            run_id=f"run-{self.number}",
            holder=HOLDER,
            listener=listening,
            interruption=listening,
            facts={},
        )

    def forget(self) -> None:
        """Forget what was done."""
        self.world.performed.clear()


def ended(result: RunResult) -> dict[str, Status]:
    return {f"{target.phase} {target.name}": target.status for target in result.targets()}


def ends(result: RunResult) -> list[tuple[str, str, Status]]:
    """Day, phase with target and status of all, in order."""
    return [
        (instance.parameters["day"], f"{target.phase} {target.name}", target.status)
        for instance in result.instances
        for phase in instance.phases
        for target in phase.targets
    ]


def would_run(plan: Plan) -> list[Done]:
    """Return what a plan says would run, in its order."""
    return [
        (instance.parameters["day"], step.phase, step.target)
        for instance in plan.instances
        for phase in instance.phases
        for step in phase.steps
        if step.status is Planned.WOULD_RUN
    ]
