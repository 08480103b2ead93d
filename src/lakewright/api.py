"""The Python API: a project, its jobs, and the processing of single slices.

```python
from lakewright import Project, Processing

lake = Project.load("lake")
summary = Processing(lake.entity("regions"), "2025-07-01-slice.parquet").process()
summary.inserted, summary.updated, summary.deleted
```

Source: `processing-strategies.md`, "Code Flow" and "Usage".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from lakewright.app import App
from lakewright.errors import UsageError
from lakewright.plan.phase import Phase
from lakewright.plan.step import Plan, Step
from lakewright.run.case_result import CaseResult
from lakewright.run.request import JobRequest
from lakewright.run.result import RunResult, TargetResult
from lakewright.slices.result import ProcessResult
from lakewright.spark.session import SharedSession
from lakewright.spec.models import entity as spec
from lakewright.strategies.summary import Summary
from lakewright.usecases.plan_job import plan_job
from lakewright.usecases.process_slices import process_slices
from lakewright.usecases.run_job import run_job
from lakewright.usecases.run_tests import run_tests, select_tests

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Entity", "Processing", "Project"]

_PROCESSING_TIME = "processing.time"


class _Unattended:
    """Ignores the progress of a run and never interrupts it."""

    signal: int | None = None

    def step_started(self, instance: int, step: Step) -> None:
        """Do nothing."""

    def step_finished(self, instance: int, step: Step, result: TargetResult) -> None:
        """Do nothing."""


@dataclass(frozen=True, slots=True)
class Entity:
    """An entity of a loaded project."""

    project: Project
    declared: spec.Entity

    @property
    def name(self) -> str:
        """Its name."""
        return self.declared.name

    def process(self) -> ProcessResult:
        """Process all pending slices in order; failures are in the result."""
        return process_slices(self.project.app, self.declared.id)


class Project:
    """An open project; use it as a context manager, or close it."""

    def __init__(self, app: App) -> None:
        self.app = app

    @classmethod
    def load(
        cls,
        folder: str | Path,
        *,
        profiles: Sequence[str] = (),
        definitions: Mapping[str, str] | None = None,
        config: Mapping[str, str] | None = None,
        spark: SparkSession | None = None,
    ) -> Project:
        """Load the project in a folder.

        Args:
            folder: The folder that has `project.yml`.
            profiles: Names of the profiles to use.
            definitions: Values that override environments, as `-D` on the command line.
            config: Configuration that overrides the project's, as `--conf`.
            spark: A session that runs already. The project works in new sessions that share its JVM; its
                settings and temporary views are not used or changed, and it is never stopped. Without it,
                a session that runs in this process is used in the same way; if there is none, one is
                started when it is needed, and stopped when the project is closed.

        Raises:
            SpecError: The project's files are wrong; the error has every fault.
            SparkUnavailable: The given session has no Delta Lake, or is stopped.
        """
        sessions = None if spark is None else SharedSession(spark)
        if sessions is not None:
            sessions.check()
        return cls(
            App.open(
                Path(folder), profiles=profiles, definitions=definitions, config=config, sessions=sessions
            )
        )

    @property
    def name(self) -> str:
        """Its name."""
        return self.app.project.name

    def entity(self, name: str | int) -> Entity:
        """Return an entity by name or id.

        Raises:
            SpecError: There is no such entity.
        """
        return Entity(self, self.app.project.entity(name))

    def plan(self, job: str, phase: str = "verify", *arguments: str) -> Plan:
        """Return what running a job up to a phase would do; nothing is written.

        Args:
            job: Its name.
            phase: The last phase of its lifecycle.
            *arguments: `p=v`, `p:start=…` and so on, as on the command line.

        Raises:
            SpecError: The job, its arguments or a definition are wrong.
        """
        return plan_job(self.app, JobRequest(job, _phase(phase), arguments))

    def run(self, job: str, phase: str = "verify", *arguments: str, keep_going: bool = False) -> RunResult:
        """Run a job up to a phase and return how it ended; failures are in the result.

        Args:
            job: Its name.
            phase: The last phase of its lifecycle.
            *arguments: `p=v`, `p:start=…` and so on, as on the command line.
            keep_going: Run targets that do not depend on a failed one.

        Raises:
            SpecError: The job, its arguments or a definition are wrong; nothing ran.
        """
        request = JobRequest(job, _phase(phase), arguments, keep_going=keep_going)
        nobody = _Unattended()
        return run_job(self.app, request, listener=nobody, interruption=nobody)

    def test(self, *names: str, keep_going: bool = False) -> tuple[CaseResult, ...]:
        """Run the project's own tests, or those with these names, and return how each ended.

        The project's lake, manifest and history are not touched. `*` in a name matches anything.

        Raises:
            UsageError: There is no such test.
        """
        nobody = _Unattended()
        chosen = select_tests(self.app, names)
        return tuple(run_tests(self.app, chosen, listener=nobody, interruption=nobody, keep_going=keep_going))

    def close(self) -> None:
        """Close the manifest, and stop Spark if the project started it."""
        self.app.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Processing:
    """One slice of an entity, processed under the control of the manifest.

    Args:
        entity: From `Project.entity`.
        slice: Name of the slice in the entity's bronze folder.
        options: `processing.time`: ISO 8601, used instead of the current time.
    """

    def __init__(self, entity: Entity, slice: str, options: Mapping[str, str] | None = None) -> None:
        self.entity = entity
        self.slice = slice
        self.options = dict(options or {})
        unknown = sorted(self.options.keys() - {_PROCESSING_TIME})
        if unknown:
            raise UsageError(f"unknown option {unknown[0]!r}", remedy=f"There is only {_PROCESSING_TIME}.")

    def process(self, strategy: str | None = None) -> Summary:
        """Process the slice by the entity's strategy, or by another one, and return its metrics.

        Raises:
            LakewrightError: The slice could not be processed: `DuplicateBusinesskeyException`, `ItemFailed`
                and so on. The manifest records the error, too.
        """
        result = process_slices(
            self.entity.project.app,
            self.entity.declared.id,
            self.slice,
            strategy=strategy,
            processing_time=self.options.get(_PROCESSING_TIME),
        )
        if result.error is not None:
            raise result.error
        return result.slices[0].summary


def _phase(text: str) -> Phase:
    try:
        return Phase(text.upper())
    except ValueError:
        known = ", ".join(phase.value.lower() for phase in Phase)
        raise UsageError(f"{text!r} is not a phase", remedy=f"The phases are {known}.") from None
