"""Run one step: retry it after temporary errors, and cancel it when it exceeds its timeout.

Source: `lifecycles-and-phases.md`, "Execution Phases"; `retries` and `timeout` are Lakewright's own.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from itertools import count
from threading import Event, Thread
from typing import Any

from lakewright.errors import SpecError, TargetTimeout, retryable_codes
from lakewright.errors.phrase import Phrase
from lakewright.lake.commit import carrying_build
from lakewright.lake.lake import Lake, cancel_quietly
from lakewright.lake.spark_errors import query_failure
from lakewright.lake.tracing import span
from lakewright.plan.outcome import Outcome
from lakewright.plan.reason import Code
from lakewright.plan.status import Status
from lakewright.plan.step import Step
from lakewright.run.plan_warnings import with_warning
from lakewright.run.planning import Contexts
from lakewright.spark.jvm import is_jvm_failure, jvm_failure
from lakewright.spec.reason import Reason
from lakewright.targets.context import Context
from lakewright.targets.registration import register_tables
from lakewright.targets.target import Target
from lakewright.workspace.workspace import OF_NO_MAPPING, Workspace

log = logging.getLogger(__name__)

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 30.0
"""Seconds before the second attempt, doubled before each further one, and the longest pause."""

POLL = 0.2
"""Seconds between two checks whether to stop, and between two attempts to cancel."""


@dataclass(frozen=True, slots=True)
class StepRunner:
    """Runs steps with the retries and the timeout of their targets.

    Attributes:
        is_cut_off: Returns whether the running steps were cancelled.
        build_of: Returns the build that a step makes, as its commits carry it; None if it makes none.
        sleep: Waits for a number of seconds.
    """

    contexts: Contexts
    lake: Lake
    run_id: str
    is_cut_off: Callable[[], bool] = lambda: False
    build_of: Callable[[int, Step], Mapping[str, Any] | None] = lambda *_: None
    sleep: Callable[[float], None] = time.sleep

    def perform(self, instance: int, step: Step) -> Outcome:
        """Run a step and return its outcome.

        Raises:
            TargetTimeout: It took longer than the target's `timeout`.
            TargetError: Spark failed; or its JVM has ended, or has no memory.
            Exception: The error of the last attempt.
        """
        context = self.contexts.of(instance)
        target = Target.named(context.workspace, step.target)
        try:
            with span(
                f"{step.target} {step.phase}", kind=step.kind, target=step.target, phase=step.phase
            ) as traced:
                with target.located(context.workspace), carrying_build(self.build_of(instance, step)):
                    outcome = with_warning(self._run_limited(target, context, instance, step), step)
                traced.note(status=outcome.status.value)
                if outcome.status.is_failure:
                    traced.fail(outcome.error.message if outcome.error else outcome.status.value)
                return outcome
        except Exception as error:
            if is_jvm_failure(error):
                raise jvm_failure(f"{target.label}: {step.phase}", error) from error
            failure = query_failure(error, f"while {target.label} ran {step.phase}")
            if failure is None:
                raise
            log.debug("%s failed in %s", step.target, step.phase, exc_info=True)
            raise failure from error

    def _run_limited(self, target: Target, context: Context, instance: int, step: Step) -> Outcome:
        # Spark takes no commas in tags.
        tag = f"lakewright {self.run_id} {instance} {step.phase} {step.target}".replace(",", ";")
        allowed = None if target.timeout is None else target.timeout.exact
        texts: dict[str, None] = {}

        def warn(text: str) -> None:
            texts[text] = None
            context.warn(text)

        with self.lake.tagging_jobs(tag), _limited(allowed, partial(self.lake.cancel_jobs, tag)) as limit:
            within = replace(
                context,
                warn=warn,
                append_id=step.append_id(self.run_id, instance),
                is_stopping=lambda: limit.is_over or context.is_stopping() or self.is_cut_off(),
                is_cut_off=self.is_cut_off,
            )
            try:
                outcome = self._run_with_retries(target, within, step)
            except Exception as error:
                if limit.is_over:
                    raise _timeout(target, step) from error
                raise
        notes = [*_notes(target, context.workspace), *register_tables(target, context.workspace, step.phase)]
        for text in notes:
            warn(Phrase(f"{target.label}: ", text))
        outcome = replace(outcome, warnings=tuple(texts))
        if limit.is_over and not outcome.status.is_success:
            return replace(outcome, status=Status.FAILED, error=_timeout(target, step).as_fault())
        return outcome

    def _run_with_retries(self, target: Target, context: Context, step: Step) -> Outcome:
        failures: list[Reason] = []
        for attempt in count(1):
            is_last = attempt > target.retries
            try:
                outcome = target.execute(context, step.phase)
                if is_last or context.is_stopping() or not _is_temporary_outcome(outcome):
                    return replace(outcome, reasons=(*failures, *outcome.reasons))
                message = outcome.error.message if outcome.error else str(outcome.status)
            except Exception as error:
                if is_last or context.is_stopping() or not _is_temporary(error):
                    raise
                message = str(error)
            tried = {"attempt": attempt, "attempts": target.retries + 1, "why": message}
            failures.append(Reason(Code.ATTEMPT_FAILED, tried))
            self._pause(min(FIRST_PAUSE * 2 ** (attempt - 1), LONGEST_PAUSE), context, step, failures[-1])
        raise AssertionError("the last attempt returns or raises")

    def _pause(self, seconds: float, context: Context, step: Step, why: Reason) -> None:
        about = {"run_id": self.run_id, "phase": step.phase.value, "target": step.target}
        log.warning("%s; trying again in %.0f s", why, seconds, extra=about)
        left = seconds
        while left > 0 and not context.is_stopping():
            self.sleep(min(POLL, left))
            left -= POLL


@dataclass(slots=True)
class _Limit:
    """Whether a step has exceeded its timeout."""

    is_over: bool = False


@contextmanager
def _limited(allowed: timedelta | None, cancel: Callable[[], None]) -> Iterator[_Limit]:
    """Cancel the work inside when it exceeds the timeout, and again until it has ended."""
    limit = _Limit()
    if allowed is None:
        yield limit
        return
    done = Event()

    def watch() -> None:
        if done.wait(allowed.total_seconds()):
            return
        limit.is_over = True
        while True:
            cancel_quietly(cancel)
            if done.wait(POLL):
                return

    Thread(target=watch, name="timeout", daemon=True).start()
    try:
        yield limit
    finally:
        done.set()


def _timeout(target: Target, step: Step) -> TargetTimeout:
    return TargetTimeout(
        f"{target.label}: {step.phase} took longer than {target.timeout}",
        details={"timeout": str(target.timeout)},
    )


def _notes(target: Target, workspace: Workspace) -> Iterator[str]:
    """Yield what the mappings and relations report of the rows that a target has read of them."""
    for reference in target.references():
        if reference.category == "mapping":
            yield from workspace.take_notes(reference.name)
    yield from workspace.notes.take([OF_NO_MAPPING])


def _is_temporary(error: Exception) -> bool:
    """Return whether a retry may succeed, as after one of Delta's conflicts with other writers."""
    if isinstance(error, SpecError) and isinstance(error.__cause__, Exception):
        error = error.__cause__  # what a function of the project raised
    names = {each.__name__ for each in type(error).__mro__}
    return (
        bool(getattr(error, "is_retryable", False))
        or isinstance(error, (ConnectionError, TimeoutError))
        or "DeltaConcurrentModificationException" in names
    )


def _is_temporary_outcome(outcome: Outcome) -> bool:
    is_failed = outcome.status is Status.FAILED and outcome.error is not None
    return is_failed and outcome.error is not None and outcome.error.code in retryable_codes()
