"""What the command line's tests put in place of a terminal and a project."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from unittest import mock

from lakewright.app import App
from lakewright.cli.call import Call
from lakewright.cli.entry import answer
from lakewright.cli.options import Settings
from lakewright.cli.output import Output
from lakewright.doctor import Diagnosis
from lakewright.errors import Fault, LakewrightError
from lakewright.lake.lake import Lake
from lakewright.manifest.journal import Journal
from lakewright.manifest.lease import Holder
from lakewright.manifest.ledger import Ledger
from lakewright.manifest.record import Author
from lakewright.manifest.redaction import Redactor
from lakewright.manifest.store import Store
from lakewright.plan.permissions import Permissions
from lakewright.plan.phase import Phase
from lakewright.plan.reason import Code, note
from lakewright.plan.status import Planned, Status
from lakewright.plan.step import InstancePlan, PhasePlan, Plan, Step
from lakewright.run.result import InstanceResult, PhaseResult, RunResult, TargetResult
from lakewright.slices.result import SliceReport
from lakewright.spark.conf import SessionSettings
from lakewright.spec.expressions.scope import Scope
from lakewright.spec.models.column import Column
from lakewright.spec.models.entity import Entity, Strategy
from lakewright.spec.models.entity_settings import EntitySettings
from lakewright.spec.models.job import Job
from lakewright.spec.models.lake import LakeSettings
from lakewright.spec.models.places import Address, Places
from lakewright.spec.models.slice_folder import SliceFolder
from lakewright.spec.models.watermark import Watermark
from lakewright.spec.reason import Reason
from lakewright.stores.process import is_dead, this_process
from lakewright.testing import MemoryStore

NOW = datetime(2022, 3, 1, 3, 0, tzinfo=UTC)


USE_CASES = {
    "lakewright.usecases.diagnose.plan_repair": "plan_repair",
    "lakewright.usecases.diagnose.repair_table": "repair",
    "lakewright.usecases.document_project.document_project": "document",
    "lakewright.usecases.diagnose.maintain_table": "maintain",
    "lakewright.usecases.run_job.instance_parameters": "instances",
    "lakewright.usecases.run_job.plan_job": "plan",
    "lakewright.usecases.process_slices.process_slices": "process",
    "lakewright.usecases.run_job.run_job": "run",
    "lakewright.usecases.run_job.rehearsal": "rehearsing",
}
"""Use cases that a fake answers if it has the method; the others are the real ones."""


class Screen(io.StringIO):
    """A stream that is a terminal."""

    def isatty(self) -> bool:
        return True


@dataclass
class Answered:
    """What a call printed and returned."""

    code: int
    out: str
    err: str
    app: FakeApp

    @property
    def last_line(self) -> str:
        return self.out.rstrip().splitlines()[-1]


@dataclass
class FakeApp:
    """Gives the plan and the result that a test wants, and remembers what it was asked."""

    planned: Plan | None = None
    result: RunResult | None = None
    error: Exception | None = None
    asked: list[Any] = field(default_factory=list)
    warnings: tuple[Fault, ...] = ()
    settings: Settings = field(default_factory=Settings)
    is_closed: bool = False
    run_id: str = "r1"
    manifest_settings: dict[str, Any] = field(default_factory=lambda: {"kind": "memory"})
    diagnosis: Diagnosis = field(default_factory=lambda: Diagnosis(None))
    repairable: Any = None
    project: Any = None
    workspace: None = None
    lake: Any = field(default_factory=lambda: Lake(LakeSettings(), SessionSettings(Path("/nowhere"))))
    bronze: Path = Path("/nowhere/bronze")
    redactor: Redactor = field(default_factory=lambda: Redactor(frozenset({"hunter2-secret"})))
    store: Store = field(default_factory=lambda: MemoryStore(lambda: NOW))
    say: Callable[[str], None] = print
    on_slice: Callable[[SliceReport], None] = lambda _: None
    clock: Callable[[], datetime] = lambda: NOW
    ids: Callable[[], str] = field(default_factory=lambda: map(str, count(1)).__next__)

    chain, placed_entities = App.chain, App.placed_entities

    @property
    def ledger(self) -> Ledger:
        return self.ledger_of(self.store)

    def ledger_of(self, store: Store, author: str = "lakewright") -> Ledger:
        return Ledger(store, Author.named(author), ids=self.ids, is_dead=is_dead, redactor=self.redactor)

    @property
    def journal(self) -> Journal:
        return Journal(self.store, redactor=self.redactor)

    def __post_init__(self) -> None:
        days = Watermark(column_name="day", expression="${last_value}")
        seen = Watermark(column_name="seen on", expression="${last_value}")
        columns = (Column(name="seen on", newname="seen"),)
        declared = Entity(
            id="1",
            name="orders",
            connection="shop",
            processtype="full",
            columns=columns,
            watermark=(days, seen),
        )
        entity = SimpleNamespace(
            scope=Scope(),
            name="orders",
            identity="orders",
            called="orders",
            destination="orders",
            enabled=True,
            after=(),
            strategy=Strategy.MERGE,
            settings=EntitySettings(
                late_slices="hold",
                sequence_by=None,
                on_bad_rows="fail",
                changed_slices="hold",
                delete_missing=False,
            ),
            watermarks=declared.watermarks,
            silver_name=declared.silver_name,
            places=lambda _: Places(
                SliceFolder(self.project.lake), Address(location=f"{self.project.lake}/silver"), raw=""
            ),
        )
        self.project = self.project or SimpleNamespace(
            name="shop",
            basedir=Path("/lake"),
            config={},
            manifest={},
            lake=str(self.bronze),
            entities={"orders": entity},
            entity={"orders": entity}.__getitem__,
            entity_keys=lambda name: ["orders"] if name == "orders" else [],
            jobs={"other": SimpleNamespace(targets=()), "daily": Job(name="daily")},
            targets={},
            triggers={},
            faults=(),
            faulty={},
            new_names={},
        )

    def plan(self, request: Any) -> Plan:
        self.asked.append(request)
        if self.error is not None:
            raise self.error
        assert self.planned is not None
        return self.planned

    def instances(self, _request: Any) -> tuple[dict[str, str], ...]:
        found = () if self.result is None else self.result.instances
        return tuple({name: str(value) for name, value in each.parameters.items()} for each in found)

    def run(self, request: Any, *, listener: Any, interruption: Any) -> RunResult:
        self.asked.append(request)
        assert interruption.signal is None
        if self.error is not None:
            raise self.error
        assert self.result is not None
        for index, instance in enumerate(self.result.instances):
            for phase in instance.phases:
                for target in phase.targets:
                    step = Step(
                        phase.phase, target.name, target.kind, Planned.WOULD_RUN, (Reason(Code.EMPTY),)
                    )
                    listener.step_started(index, step)
                    listener.step_finished(index, step, target)
        return self.result

    @property
    def holder(self) -> Holder:
        return this_process(self.run_id)

    def context(self, **_: object) -> None:
        return None

    def examine(self, _context: None, entity: Any) -> Diagnosis:
        self.asked.append(entity.name)
        if self.error is not None:
            raise self.error
        return self.diagnosis

    def plan_repair(self, entity: str, permissions: Permissions) -> Any:
        self.asked.append((entity, permissions.allow_data_loss))
        return self.repairable

    def repair(self, entity: str, planned: Any, *, author: str, reason: str) -> int:
        self.asked.append((entity, author, reason))
        assert planned is self.repairable
        return 8

    def close(self) -> None:
        self.is_closed = True


def call_with(
    app: FakeApp,
    *arguments: str,
    terminal: bool = False,
    typed: str = "",
    environ: Mapping[str, str] | None = None,
    opening: Callable[[], None] = lambda: None,
) -> Answered:
    """Return what `lakewright` with these arguments answers over a project that is a fake."""
    streams = (Screen(), Screen()) if terminal else (io.StringIO(), io.StringIO())
    keyboard = Screen(typed) if terminal else io.StringIO(typed)

    def opener(
        settings: Settings, environ: Mapping[str, str], say: Callable[[str], None], /, **_: object
    ) -> App:
        assert environ["TERM"]
        app.say = say
        opening()
        app.settings = settings
        return cast("App", app)

    surroundings = {"TERM": "xterm", **(environ or {})}
    call = Call(Output(streams[0], streams[1], surroundings), surroundings, keyboard, opener, lambda: NOW)
    with ExitStack() as stack:
        for place, method in USE_CASES.items():
            if hasattr(app, method):
                stack.enter_context(mock.patch(place, _asked_of(app, method)))
        stack.enter_context(mock.patch("lakewright.usecases.diagnose.examine", app.examine))
        code = answer(arguments, call)
    return Answered(code, streams[0].getvalue(), streams[1].getvalue(), app)


def _asked_of(app: FakeApp, method: str) -> Callable[..., Any]:
    """Return what stands in for a use case: it asks the fake that it is called with."""

    def use_case(given: FakeApp, *arguments: Any, **options: Any) -> Any:
        assert given is app
        return getattr(app, method)(*arguments, **options)

    return use_case


def failing(error: LakewrightError) -> Callable[[], None]:
    def opening() -> None:
        raise error

    return opening


def step(
    target: str = "regions",
    phase: Phase = Phase.BUILD,
    status: Planned = Planned.WOULD_RUN,
    reasons: Sequence[str] = ("the partition is empty",),
    **more: Any,
) -> Step:
    return Step(phase, target, "relation", status, tuple(map(note, reasons)), **more)


def plan_of(*steps: Step, months: Sequence[str] = ("2022-01",)) -> Plan:
    phases = {one.phase: [s for s in steps if s.phase is one.phase] for one in steps}
    instance = tuple(PhasePlan(phase, tuple(inner)) for phase, inner in phases.items())
    instances = tuple(InstancePlan({"month": month}, instance) for month in months)
    return Plan("shop", "daily", steps[-1].phase if steps else Phase.BUILD, instances)


def ended(
    name: str = "regions",
    status: Status = Status.SUCCESS,
    phase: Phase = Phase.BUILD,
    reasons: Sequence[str | Reason] = (),
    **more: Any,
) -> TargetResult:
    listed = tuple(note(each) if isinstance(each, str) else each for each in reasons)
    return TargetResult(name, "relation", phase, status, listed, seconds=1.25, **more)


def result_of(*targets: TargetResult, interrupted_by: int | None = None) -> RunResult:
    phases = {one.phase: [t for t in targets if t.phase is one.phase] for one in targets}
    made = tuple(PhaseResult(phase, tuple(inner)) for phase, inner in phases.items())
    instance = InstanceResult({"month": "2022-01"}, made)
    start = NOW - timedelta(seconds=90)
    return RunResult("r1", "shop", "daily", Phase.BUILD, start, NOW, (instance,), interrupted_by)
