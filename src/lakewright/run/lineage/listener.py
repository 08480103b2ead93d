"""Reports to a collector of OpenLineage what a run or a command does."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from importlib.util import find_spec
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from lakewright.errors import Fault, LakewrightError
from lakewright.manifest.redaction import Redactor
from lakewright.plan.status import Status
from lakewright.run.background import CallQueue
from lakewright.run.lineage.events import (
    Subject,
    entity_datasets,
    event_state,
    inputs_of,
    outputs_of,
    run_event,
    run_uuid,
)
from lakewright.targets.target import Target
from lakewright.targets.verification import AssertionTarget, ErrorMode

if TYPE_CHECKING:
    from openlineage.client import OpenLineageClient

    from lakewright.plan.phase import Phase
    from lakewright.plan.step import Step
    from lakewright.run.planning import Contexts
    from lakewright.run.result import RunResult, TargetResult
    from lakewright.spec.models.entity import Entity
    from lakewright.workspace.workspace import Workspace


log = logging.getLogger(__name__)

URL, NAMESPACE = "lakewright.openlineage.url", "lakewright.openlineage.namespace"
"""The configuration of the collector and of the namespace of jobs."""

COLLECTOR = "OpenLineage"

CLOSE_SECONDS = 5.0
"""How long the end of a run waits for the events that are left; a collector that hangs is cut off."""

TIMEOUT_SECONDS = 3
"""Time limit of one request to a collector that the project configures."""


_VARIABLES = ("OPENLINEAGE_URL", "OPENLINEAGE_CONFIG", "OPENLINEAGE__TRANSPORT")


def is_configured(config: Mapping[str, str], environ: Mapping[str, str]) -> bool:
    """Return whether events are to be sent, and the client is installed; a missing one is logged."""
    if environ.get("OPENLINEAGE_DISABLED", "").strip().lower() == "true":
        return False
    if not config.get(URL) and not any(name.startswith(_VARIABLES) for name in environ):
        return False
    if find_spec("openlineage") is None:
        log.warning("OpenLineage is configured, but its client is not installed: lakewright[openlineage]")
        return False
    return True


@dataclass(slots=True)
class Reporter:
    """Sends events to the collector that a project or the environment names.

    Attributes:
        config: The project's configuration.
        environ: The environment variables.
        redactor: Hides secrets.
        clock: Returns the present time.
        calls: Sends events.
    """

    config: Mapping[str, str]
    environ: Mapping[str, str]
    redactor: Redactor
    clock: Callable[[], datetime]
    calls: CallQueue = field(default_factory=lambda: CallQueue(COLLECTOR, seconds=CLOSE_SECONDS))
    _client: OpenLineageClient | None = field(init=False, default=None)

    def subject(
        self, project: str, name: str, run_id: str, kind: str, description: str | None = None
    ) -> Subject:
        """Return the run of a job, or a command, as events name it."""
        namespace = self.environ.get("OPENLINEAGE_NAMESPACE") or self.config.get(NAMESPACE) or project
        return Subject(namespace, f"{project}.{name}", run_uuid(run_id), kind, description=description)

    def shown(self, error: Fault | None) -> Fault | None:
        """Return an error without secrets."""
        return None if error is None else Fault(self.redactor.text(error.message), code=error.code)

    def send(
        self, subject: Subject, state: str, make: Callable[[], Mapping[str, Any]] = dict, **content: Any
    ) -> None:
        """Send an event in the background; `make` returns what takes time to find out."""
        emit = partial(self._emit, subject, state, self.clock(), make, content)
        self.calls.send(COLLECTOR, emit, f"{state} of {subject.job}")

    def close(self) -> None:
        """Wait some time for the events that are left."""
        self.calls.close()

    def _emit(
        self,
        subject: Subject,
        state: str,
        at: datetime,
        make: Callable[[], Mapping[str, Any]],
        content: Mapping[str, Any],
    ) -> None:
        """Make an event and send it. The client is imported here, in the thread: that takes half a second."""
        if self._client is None:
            self._client = self._new_client()
        self._client.emit(run_event(subject, state, at, **content, **make()))

    def _new_client(self) -> OpenLineageClient:
        from openlineage.client import OpenLineageClient

        url = self.config.get(URL)
        if url is None:
            return OpenLineageClient()
        transport = {"type": "http", "url": url, "timeout": TIMEOUT_SECONDS, "retry": {"total": 1}}
        return OpenLineageClient(config={"transport": transport})


class LineageListener:
    """Sends the events of the run that takes place in its `with` block.

    Args:
        reporter: Sends them.
        run: The run, as events name it.
        run_id: Its id in the history.
        contexts: The contexts of the run's instances.
    """

    def __init__(self, reporter: Reporter, run: Subject, run_id: str, contexts: Contexts) -> None:
        self._reporter = reporter
        self._run = run
        self._run_id = run_id
        self._contexts = contexts
        self._is_over = False
        self._started: set[tuple[int, Phase, str]] = set()

    def __enter__(self) -> Self:
        """Report that the run has started."""
        self._reporter.send(self._run, "START")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Report that the run ended with an error, if it did, and wait some time for the events left."""
        if not self._is_over:
            fault = None if error is None else Fault(self._reporter.redactor.text(str(error) or repr(error)))
            self._reporter.send(self._run, "FAIL" if error else "ABORT", error=fault)
        self._reporter.close()

    def run_finished(self, result: RunResult) -> None:
        """Report how the run has ended."""
        self._is_over = True
        first = next((target.error for target in result.targets() if target.error), None)
        failed = None if result.is_success else self._reporter.shown(first)
        self._reporter.send(self._run, event_state(result.status), error=failed)

    def step_started(self, instance: int, step: Step) -> None:
        """Report that a target starts in a phase, with what it reads and writes."""
        self._started.add((instance, step.phase, step.target))
        self._step(instance, step, "START")

    def step_finished(self, instance: int, step: Step, result: TargetResult) -> None:
        """Report how a target has ended in a phase, if it has started in it."""
        if (instance, step.phase, step.target) not in self._started:
            return
        error = self._reporter.shown(result.error) if result.status.is_failure else None
        self._step(instance, step, event_state(result.status), result=result, error=error)

    def _step(
        self,
        instance: int,
        step: Step,
        state: str,
        *,
        result: TargetResult | None = None,
        error: Fault | None = None,
    ) -> None:
        try:
            workspace = self._contexts.of(instance).workspace
            target = Target.named(workspace, step.target)
        except Exception as why:  # an event must not fail the run
            log.debug("no event of %s: %s", step.target, why)
            return
        subject = Subject(
            self._run.namespace,
            f"{self._run.job}.{step.target}.{step.phase.lower()}",
            run_uuid(self._run_id, instance, step.phase, step.target),
            "TARGET",
            parent=self._run,
            description=target.description,
        )

        def make() -> Mapping[str, Any]:
            return {
                "inputs": inputs_of(target, workspace, step.phase),
                "outputs": outputs_of(target, workspace, step.phase),
            }

        metrics = {} if result is None else self._reporter.redactor.value(dict(result.metrics))
        checked = [] if result is None else _assertions(target, result)
        self._reporter.send(subject, state, make, metrics=metrics, assertions=checked, error=error)


def _assertions(target: Target, result: TargetResult) -> list[tuple[str, bool]]:
    """Return the assertions that a target has checked, and whether each holds."""
    if not isinstance(target, AssertionTarget):
        return []
    failures = result.error.details.get("failures") if result.error is not None else None
    if result.status.is_failure and failures is None:
        return []  # an error has ended the checks
    found: list[tuple[str, bool]] = []
    for assertion in target.assertions.values():
        is_failed = assertion.label in (failures or ())
        found.append((assertion.label, not is_failed))
        if is_failed and target.mode is ErrorMode.FAIL_FAST:
            break
    return found


@dataclass(slots=True)
class CommandEnd:
    """The outcome of a command, which the command fills in before it ends.

    Attributes:
        metrics: What the command counted; `slices` has the metrics of each slice.
    """

    status: Status = Status.SUCCESS
    error: Fault | None = None
    metrics: Mapping[str, Any] = field(default_factory=dict)


@contextmanager
def reporting_command(
    reporter: Reporter, verb: str, run_id: str, entity: Entity, workspace: Workspace
) -> Iterator[CommandEnd]:
    """Report to a collector, if one is configured, that a command on an entity starts, and how it ends."""
    end = CommandEnd()
    if not is_configured(reporter.config, reporter.environ):
        yield end
        return
    project = workspace.project.name
    subject = reporter.subject(project, f"{verb}.{entity.name}", run_id, "COMMAND", entity.description)
    make = partial(entity_datasets, entity, workspace)
    reporter.send(subject, "START", make)
    try:
        yield end
    except BaseException as error:
        is_abort = not isinstance(error, Exception)
        fault = error.as_fault() if isinstance(error, LakewrightError) else Fault(str(error) or repr(error))
        state = "ABORT" if is_abort else "FAIL"
        reporter.send(subject, state, make, error=None if is_abort else reporter.shown(fault))
        raise
    else:
        failed = reporter.shown(end.error) if end.status.is_failure else None
        metrics = reporter.redactor.value(dict(end.metrics))
        reporter.send(subject, event_state(end.status), make, metrics=metrics, error=failed)
    finally:
        reporter.close()
