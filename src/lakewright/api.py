"""What Python code imports: a project, its jobs, and the processing of single slices.

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
from typing import Self

from lakewright.app import App, JobRequest
from lakewright.errors import UsageError
from lakewright.plan.phase import Phase
from lakewright.plan.step import Plan, Step
from lakewright.run.case_result import CaseResult
from lakewright.run.result import RunResult, TargetResult
from lakewright.slices.result import ProcessResult
from lakewright.spec.models import entity as spec
from lakewright.stores.process import this_process
from lakewright.strategies.summary import Summary

__all__ = ["Entity", "Processing", "Project"]

_PROCESSING_TIME = "processing.time"


class _Unattended:
    """Nobody watches the run, and nobody interrupts it."""

    signal: int | None = None

    def step_started(self, instance: int, step: Step) -> None:
        """Take no note."""

    def step_finished(self, instance: int, step: Step, result: TargetResult) -> None:
        """Take no note."""


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
        """Return what processing all its pending slices, in order, came to; failures are in the result."""
        return self.project.app.process(self.declared.id)


class Project:
    """A project, ready to be planned and run; use it as a context manager, or close it."""

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
    ) -> Project:
        """Return the project of a folder.

        Args:
            folder: Where `project.yml` is.
            profiles: Names of profiles to put in force.
            definitions: Names with texts that win over environments, as `-D` on the command line.
            config: Configuration that wins over the project's, as `--conf`.

        Raises:
            SpecError: The project's files are wrong; the error has every fault.
        """
        return cls(App.open(Path(folder), profiles=profiles, definitions=definitions, config=config))

    @property
    def name(self) -> str:
        """Its name."""
        return self.app.project.name

    def entity(self, name: str | int) -> Entity:
        """Return an entity by name or id.

        Raises:
            SpecError: There is none.
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
        return self.app.plan(JobRequest(job, _phase(phase), arguments))

    def run(self, job: str, phase: str = "verify", *arguments: str, keep_going: bool = False) -> RunResult:
        """Return how running a job up to a phase ended; failures are in the result.

        Args:
            job: Its name.
            phase: The last phase of its lifecycle.
            *arguments: `p=v`, `p:start=…` and so on, as on the command line.
            keep_going: Go on with what doesn't depend on a failure.

        Raises:
            SpecError: The job, its arguments or a definition are wrong; nothing ran.
        """
        request = JobRequest(job, _phase(phase), arguments, keep_going=keep_going)
        nobody = _Unattended()
        return self.app.run(request, listener=nobody, interruption=nobody)

    def test(self, *names: str, keep_going: bool = False) -> tuple[CaseResult, ...]:
        """Return how the project's own tests ended, or those named; nothing of the project's is touched.

        Raises:
            SpecError: There is no such test, or it isn't declared correctly.
        """
        nobody = _Unattended()
        holder = this_process(self.app.run_id)
        with self.app.rehearsing(keep_going=keep_going) as ready:
            return tuple(
                ready(name).run(holder, nobody, nobody) for name in names or tuple(self.app.project.tests)
            )

    def close(self) -> None:
        """Let go of the manifest and stop Spark, if they were used."""
        self.app.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Processing:
    """One slice of an entity, to be processed under the manifest.

    Args:
        entity: From `Project.entity`.
        slice: Name of the slice in the entity's bronze folder.
        options: `processing.time`: ISO 8601, in place of the current time.
    """

    def __init__(self, entity: Entity, slice: str, options: Mapping[str, str] | None = None) -> None:
        self.entity = entity
        self.slice = slice
        self.options = dict(options or {})
        unknown = sorted(self.options.keys() - {_PROCESSING_TIME})
        if unknown:
            raise UsageError(f"unknown option {unknown[0]!r}", remedy=f"There is {_PROCESSING_TIME}.")

    def process(self, strategy: str | None = None) -> Summary:
        """Return the metrics of the slice, processed by the entity's strategy or another one.

        Raises:
            LakewrightError: What kept the slice from being processed: `DuplicateBusinesskeyException`,
                `ItemFailed` and so on. It is in the manifest too.
        """
        result = self.entity.project.app.process(
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
        raise UsageError(f"{text!r} is no phase", remedy=f"There are {known}.") from None
