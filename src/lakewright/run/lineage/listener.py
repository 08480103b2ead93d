"""The listener that tells a collector of OpenLineage what a run does."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from lakewright.errors import Fault
from lakewright.manifest.redact import Redactor
from lakewright.run.lineage.events import Subject, event_state, inputs_of, outputs_of, run_uuid
from lakewright.run.lineage.reporter import Reporter, Sender
from lakewright.targets.assertions import AssertionTarget, ErrorMode
from lakewright.targets.target import Target

if TYPE_CHECKING:
    from lakewright.plan.phase import Phase
    from lakewright.plan.step import Step
    from lakewright.run.contexts import Contexts
    from lakewright.run.result import RunResult, TargetResult

__all__ = ["LineageListener", "RunNames"]

log = logging.getLogger(__name__)


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
        self._reporter = Reporter(config, environ, redactor, clock, sender or Sender("OpenLineage"))
        self._redactor = redactor
        self._names = names
        self._contexts = contexts
        self._is_over = False
        self._started: set[tuple[int, Phase, str]] = set()
        self._run = Subject(
            self._reporter.namespace(names.project),
            f"{names.project}.{names.job}",
            run_uuid(names.run_id),
            "JOB",
            description=names.description,
        )

    def __enter__(self) -> Self:
        """Tell that the run has started."""
        self._reporter.send(self._run, "START")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Tell that the run ended with an error, if it did, and wait some time for the events left."""
        if not self._is_over:
            fault = None if error is None else Fault(self._redactor.text(str(error) or repr(error)))
            self._reporter.send(self._run, "FAIL" if error else "ABORT", error=fault)
        self._reporter.close()

    def run_finished(self, result: RunResult) -> None:
        """Tell how the run has ended."""
        self._is_over = True
        first = next((target.error for target in result.targets() if target.error), None)
        failed = None if result.is_success else self._reporter.shown(first)
        self._reporter.send(self._run, event_state(result.status), error=failed)

    def step_started(self, instance: int, step: Step) -> None:
        """Tell that a target starts in a phase, with what it reads and writes."""
        self._started.add((instance, step.phase, step.target))
        self._step(instance, step, "START")

    def step_finished(self, instance: int, step: Step, result: TargetResult) -> None:
        """Tell how a target has ended in a phase; of one that has not started there is nothing to tell."""
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
