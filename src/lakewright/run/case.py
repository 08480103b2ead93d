"""Run one of the project's own tests: build its targets in a temporary folder, check assertions, clean up.

Source: the project files' rules, `tests` (Flowman's tests).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from lakewright.checks.check import Assertion
from lakewright.checks.run import AssertionRun
from lakewright.errors import Fault, LakewrightError, UsageError
from lakewright.lake.lake import Lake
from lakewright.lake.paths import Redirects
from lakewright.lake.spark_errors import located_rejection, message_of, query_failure
from lakewright.manifest.journal import Journal
from lakewright.manifest.lease import Holder
from lakewright.manifest.plain_values import document_of
from lakewright.plan.permissions import Permissions
from lakewright.plan.phase import Phase
from lakewright.plan.resource import Resource
from lakewright.plan.status import Status, overall
from lakewright.plan.step import Plan
from lakewright.run.execution import Interruption, Listener
from lakewright.run.job import JobRun
from lakewright.run.request import JobRequest
from lakewright.run.result import RunResult, TargetResult
from lakewright.spec.loading.case_setup import CaseSetup
from lakewright.spec.models.job import Job
from lakewright.targets.context import Context
from lakewright.targets.target import Target
from lakewright.workspace.workspace import Workspace

if TYPE_CHECKING:
    from lakewright.spec.definitions.definition import Definition


log = logging.getLogger(__name__)

LAYERS = ("raw", "bronze", "silver")


def redirects_of(stage: CaseSetup, lake: Lake, folder: Path) -> Redirects:
    """Return the redirects of a test, which put the lake's layers and all other output below `folder`.

    Raises:
        UsageError: The test would write something that cannot be redirected.
        SpecError: One of its targets is not declared correctly.
    """
    workspace = Workspace(stage.project, stage.project.scope, lake)
    settings = lake.settings
    names = {settings.container(layer, is_secure=secure) for layer in LAYERS for secure in (False, True)}
    places = [f"{settings.root_folder.rstrip('/')}/{name}" for name in names if settings.root_folder]
    for name in _target_names(stage):
        for resource in _written(Target.named(workspace, name), workspace):
            if resource.category == "file":
                places.append(resource.name)
            elif resource.category != "table":
                raise UsageError(
                    f"test {stage.name!r}: target {name!r} would write {resource.name}, which a test "
                    "cannot redirect",
                    remedy="Replace its relation by a mock (overrideRelations).",
                )
    return Redirects.of(folder, places)


def redirected_lake(shared: Lake, redirects: Redirects) -> Lake:
    """Return the lake with the redirects of a test, and with the session of another lake.

    Its tables get no names in the catalog, where those of the other lake have theirs.
    """
    root = redirects.inside(shared.settings.root_folder)
    settings = shared.settings.model_copy(update={"root_folder": root, "registered_in": ""})
    return Lake(
        settings,
        shared.session,
        sessions=shared.sessions,
        storage=shared.storage,
        redirect=redirects,
        owner=shared,
    )


def _written(target: Target, workspace: Workspace) -> Iterable[Resource]:
    return frozenset().union(*(target.provides(workspace, phase) for phase in target.phases()))


def _target_names(stage: CaseSetup) -> tuple[str, ...]:
    scope = stage.project.scope
    return tuple(dict.fromkeys([*stage.fixtures, *(scope.render(name) for name in stage.targets)]))


@dataclass(frozen=True, slots=True)
class CaseRun:
    """One test, to be planned or run.

    Attributes:
        lake: The lake with the redirects of the test.
        journal: A history used by this test only, like the store behind `context`.
        context: Makes the context of targets from a workspace.
        keep_going: Whether assertions are checked even if the build failed or another one raised an error.
    """

    stage: CaseSetup
    lake: Lake
    journal: Journal
    context: Callable[[Workspace], Context]
    clock: Callable[[], datetime]
    environ: Mapping[str, str] = field(default_factory=dict)
    keep_going: bool = False

    def plan(self) -> Plan:
        """Return the plan of the build; output of fixtures counts as missing."""
        return self._job(Phase.VERIFY).plan()

    def run(self, holder: Holder, listener: Listener, interruption: Interruption) -> CaseResult:
        """Run the test and return its result; everything it built is removed, even if it fails."""
        begin = self.clock()
        is_empty = not _target_names(self.stage)
        runs: list[RunResult] = []
        assertions: tuple[AssertionResult, ...] = ()
        error: Fault | None = None
        try:
            if not is_empty:
                runs.append(self._run(Phase.VERIFY, holder, listener, interruption))
            has_failed = any(run.status.is_failure for run in runs)
            is_skipped = interruption.signal is not None or (has_failed and not self.keep_going)
            assertions = tuple(self._assertions(interruption, is_skipped=is_skipped))
        except LakewrightError as met:
            error = met.as_fault()
        if not is_empty and error is None:
            runs.append(self._run(Phase.DESTROY, holder, listener, interruption))
        return CaseResult(
            name=self.stage.name,
            description=self.stage.description,
            runs=tuple(runs),
            assertions=assertions,
            error=error,
            seconds=(self.clock() - begin).total_seconds(),
        )

    def _run(self, phase: Phase, holder: Holder, listener: Listener, interruption: Interruption) -> RunResult:
        job = self._job(phase)
        run_id = f"{holder.run_id} {phase.value.lower()}"
        return job.run(run_id=run_id, holder=holder, listener=listener, interruption=interruption, facts={})

    def _job(self, phase: Phase) -> JobRun:
        name = self.stage.name
        targets = _target_names(self.stage)
        project = replace(self.stage.project, jobs={name: Job(name=name, targets=targets)})
        request = JobRequest(
            job=name,
            phase=phase,
            force=phase is Phase.VERIFY,
            keep_going=self.keep_going or phase is Phase.DESTROY,
            permissions=Permissions(allow_data_loss=True),
        )
        return JobRun(
            project=project,
            lake=self.lake,
            journal=self.journal,
            request=request,
            context=self.context,
            clock=self.clock,
            environ=self.environ,
        )

    def _assertions(self, interruption: Interruption, *, is_skipped: bool) -> Iterator[AssertionResult]:
        workspace = Workspace(self.stage.project, self.stage.project.scope, self.lake)
        run = AssertionRun(workspace, self._resolved(workspace))
        try:
            for definition in self.stage.assertions.values():
                if is_skipped or interruption.signal is not None:
                    yield AssertionResult(definition.name, definition.kind, Status.SKIPPED)
                    continue
                result = self._check(definition, workspace, run)
                for text in workspace.notes.take():
                    log.warning("assertion %r: %s", definition.name, text)
                is_skipped = result.error is not None and not self.keep_going
                yield result
        finally:
            workspace.close()

    def _resolved(self, workspace: Workspace) -> Iterator[Assertion]:
        for definition in self.stage.assertions.values():
            with suppress(LakewrightError):  # checking it raises the error again
                yield cast("Assertion", definition.resolve(workspace.scope))

    def _check(self, definition: Definition, workspace: Workspace, run: AssertionRun) -> AssertionResult:
        begin = self.clock()
        failures: tuple[str, ...] = ()
        description: str | None = None
        error: Fault | None = None
        subject = f"assertion {definition.name!r}"
        try:
            assertion = cast("Assertion", definition.resolve(workspace.scope))
            description = assertion.description
            with located_rejection(subject, definition.at, "Correct it, or what it reads."):
                failures = run.failures(assertion)
        except LakewrightError as met:
            error = met.as_fault()
        except Exception as met:  # an error of Spark fails the assertion, not the command
            log.debug("assertion %s failed with an error", definition.name, exc_info=True)
            moment = f"while {subject} was checked"
            failure = query_failure(met, moment)
            remedy = None if failure is None else failure.remedy
            error = Fault(message_of(met, moment), definition.at(), remedy=remedy, code="assertion")
        return AssertionResult(
            name=definition.name,
            kind=definition.kind,
            status=Status.FAILED if failures or error else Status.SUCCESS,
            description=description,
            failures=failures,
            error=error,
            seconds=(self.clock() - begin).total_seconds(),
        )


@dataclass(frozen=True, slots=True)
class AssertionResult:
    """The result of one assertion.

    Attributes:
        status: FAILED if it does not hold or could not be checked, SKIPPED if it was not reached.
        failures: The conditions that do not hold, with sample rows.
        error: The error that prevented the check.
    """

    name: str
    kind: str
    status: Status
    description: str | None = None
    failures: tuple[str, ...] = ()
    error: Fault | None = None
    seconds: float = 0.0

    def as_json(self) -> dict[str, Any]:
        """Return the assertion as `test -o json` prints it."""
        return document_of(self, seconds=round(self.seconds, 3))


@dataclass(frozen=True, slots=True)
class CaseResult:
    """The result of one test.

    Attributes:
        runs: The runs of its targets and fixtures: the build lifecycle, then DESTROY; none without targets.
        error: Why it could not be run.
    """

    name: str
    description: str | None = None
    runs: tuple[RunResult, ...] = ()
    assertions: tuple[AssertionResult, ...] = ()
    error: Fault | None = None
    seconds: float = 0.0

    def targets(self) -> Iterator[TargetResult]:
        """Yield the result of each target in each phase."""
        for run in self.runs:
            yield from run.targets()

    @property
    def status(self) -> Status:
        """FAILED if anything failed; SUCCESS_WITH_ERRORS if a target reports it; else SUCCESS."""
        if self.error is not None:
            return Status.FAILED
        found = overall([*(run.status for run in self.runs), *(each.status for each in self.assertions)])
        return Status.SUCCESS if found is Status.SKIPPED else found

    @property
    def interrupted_by(self) -> int | None:
        """The signal that interrupted it, or None."""
        return next((run.interrupted_by for run in self.runs if run.interrupted_by is not None), None)

    def as_json(self) -> dict[str, Any]:
        """Return the test as `test -o json` prints it."""
        targets = [{"phase": target.phase, **target.as_json()} for target in self.targets()]
        named = ("name", "description", "status", "assertions", "error")
        return document_of(self, *named, seconds=round(self.seconds, 3), targets=targets)
