"""The listener that tells a collector of OpenLineage what a run does.

It is on if the project configures a collector, or the client's own environment variables do.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from importlib.util import find_spec
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from lakewright.errors import Fault
from lakewright.manifest.redact import Redactor
from lakewright.plan.status import Status
from lakewright.run.lineage.datasets import inputs_of, outputs_of
from lakewright.run.lineage.events import Subject, run_event, run_uuid
from lakewright.run.lineage.sender import Sender
from lakewright.targets.assertion_target import AssertionTarget, ErrorMode
from lakewright.targets.target import Target

if TYPE_CHECKING:
    from openlineage.client import OpenLineageClient

    from lakewright.plan.phase import Phase
    from lakewright.plan.step import Step
    from lakewright.run.planning import Contexts
    from lakewright.run.result import RunResult, TargetResult

__all__ = ["NAMESPACE", "URL", "LineageListener", "RunNames", "is_configured"]

log = logging.getLogger(__name__)

URL, NAMESPACE = "lakewright.openlineage.url", "lakewright.openlineage.namespace"
"""The configuration of the collector and of the namespace of jobs."""

TIMEOUT_SECONDS = 3
"""Time limit of one request to a collector that the project configures."""

_VARIABLES = ("OPENLINEAGE_URL", "OPENLINEAGE_CONFIG", "OPENLINEAGE__TRANSPORT")


def is_configured(config: Mapping[str, str], environ: Mapping[str, str]) -> bool:
    """Return whether events are to be sent, and the client is installed; that it is missing is told."""
    if environ.get("OPENLINEAGE_DISABLED", "").strip().lower() == "true":
        return False
    if not config.get(URL) and not any(name.startswith(_VARIABLES) for name in environ):
        return False
    if find_spec("openlineage") is None:
        log.warning("OpenLineage is configured, but its client is not installed: lakewright[openlineage]")
        return False
    return True


@dataclass(frozen=True, slots=True)
class RunNames:
    """The names that events share.

    Attributes:
        description: Of the job.
    """

    project: str
    job: str
    run_id: str
    description: str | None = None


class LineageListener:
    """Sends the events of the run that takes place in its `with` block.

    Args:
        names: Project, job and run.
        contexts: The contexts of the run's instances.
        config: The project's configuration.
        environ: The environment variables.
        redactor: Hides secrets.
        clock: Returns the present time.
        sender: Sends events.
    """

    def __init__(
        self,
        names: RunNames,
        contexts: Contexts,
        *,
        config: Mapping[str, str],
        environ: Mapping[str, str],
        redactor: Redactor,
        clock: Callable[[], datetime],
        sender: Sender | None = None,
    ) -> None:
        namespace = environ.get("OPENLINEAGE_NAMESPACE") or config.get(NAMESPACE) or names.project
        self._names = names
        self._contexts = contexts
        self._url = config.get(URL)
        self._redactor = redactor
        self._clock = clock
        self._sender = sender or Sender("OpenLineage")
        self._client: OpenLineageClient | None = None
        self._is_over = False
        self._started: set[tuple[int, Phase, str]] = set()
        self._run = Subject(
            namespace,
            f"{names.project}.{names.job}",
            run_uuid(names.run_id),
            "JOB",
            description=names.description,
        )

    def __enter__(self) -> Self:
        """Tell that the run has started."""
        self._send(self._run, "START")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Tell that the run ended with an error, if it did, and wait some time for the events left."""
        if not self._is_over:
            fault = None if error is None else Fault(self._redactor.text(str(error) or repr(error)))
            self._send(self._run, "FAIL" if error else "ABORT", error=fault)
        self._sender.close()

    def run_finished(self, result: RunResult) -> None:
        """Tell how the run has ended."""
        self._is_over = True
        first = next((target.error for target in result.targets() if target.error), None)
        failed = None if result.is_success else self._shown(first)
        self._send(self._run, _state(result.status), error=failed)

    def step_started(self, instance: int, step: Step) -> None:
        """Tell that a target starts in a phase, with what it reads and writes."""
        self._started.add((instance, step.phase, step.target))
        self._step(instance, step, "START")

    def step_finished(self, instance: int, step: Step, result: TargetResult) -> None:
        """Tell how a target has ended in a phase; of one that has not started there is nothing to tell."""
        if (instance, step.phase, step.target) not in self._started:
            return
        error = self._shown(result.error) if result.status.is_failure else None
        self._step(instance, step, _state(result.status), result=result, error=error)

    def _shown(self, error: Fault | None) -> Fault | None:
        return None if error is None else Fault(self._redactor.text(error.message), code=error.code)

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
        names = self._names
        subject = Subject(
            self._run.namespace,
            f"{names.project}.{names.job}.{step.target}.{step.phase.lower()}",
            run_uuid(names.run_id, instance, step.phase, step.target),
            "TARGET",
            parent=self._run,
            description=target.description,
        )

        def make() -> Mapping[str, Any]:
            return {
                "inputs": inputs_of(target, workspace, step.phase),
                "outputs": outputs_of(target, workspace, step.phase),
            }

        metrics = {} if result is None else self._redactor.value(dict(result.metrics))
        checked = [] if result is None else _assertions(target, result)
        self._send(subject, state, make, metrics=metrics, assertions=checked, error=error)

    def _send(
        self, subject: Subject, state: str, make: Callable[[], Mapping[str, Any]] = dict, **content: Any
    ) -> None:
        self._sender.send(partial(self._emit, subject, state, self._clock(), make, content))

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

        if self._url is None:
            return OpenLineageClient()
        transport = {"type": "http", "url": self._url, "timeout": TIMEOUT_SECONDS, "retry": {"total": 1}}
        return OpenLineageClient(config={"transport": transport})


def _state(status: Status) -> str:
    if status is Status.ABORTED:
        return "ABORT"
    return "FAIL" if status.is_failure else "COMPLETE"


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
        is_failed = is_failed or any(each.startswith(f"{assertion.label}: ") for each in result.reasons)
        found.append((assertion.label, not is_failed))
        if is_failed and target.mode is ErrorMode.FAIL_FAST:
            break
    return found
