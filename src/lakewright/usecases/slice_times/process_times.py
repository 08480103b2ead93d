"""The processing times of slices that are processed without a job: by hand, or by a trigger."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakewright.errors import LakewrightError
from lakewright.slices.other_runs import declared_time, processing_jobs
from lakewright.spec.expressions.expression import names_in, parse_template

if TYPE_CHECKING:
    from lakewright.app import App
    from lakewright.spec.expressions.scope import Scope
    from lakewright.spec.models.entity import Entity
    from lakewright.spec.models.job import Job

__all__ = ["ProcessTimes", "process_times"]


@dataclass(frozen=True, slots=True)
class ProcessTimes:
    """The processing times that slices get.

    Attributes:
        text: ISO 8601, or an expression over the slice; None for the time of now.
        scope: Names that the expression may use.
        note: Which times these are, if the caller gave none and a job declares some.
        is_now: Whether a job declares times that these are not.
    """

    text: str | None
    scope: Scope
    note: str | None = None
    is_now: bool = False


def process_times(app: App, entity: Entity, given: str | None) -> ProcessTimes:
    """Return the times that are given, or those that all jobs declare for an entity's slices.

    A time that depends on a job's parameters, or that not all jobs declare, is not used: then it is that of
    now, and the note says so.
    """
    scope = app.workspace.scope
    declared = [(job, declared_time(each)) for job, each in processing_jobs(app.project, entity.called)]
    texts = list(dict.fromkeys(text for _, text in declared if text is not None))
    if given is not None or not texts:
        return ProcessTimes(given, scope)
    jobs = [job for job, text in declared if text is not None]
    named = f"the job {jobs[0].name} declares {texts[0]!r}"
    if len(texts) > 1 or len(jobs) < len(declared):
        why = f"{named}, and not all jobs that process {entity.called} declare the same"
    elif any(_needs_parameters(job, texts[0]) for job in jobs):
        why = f"{named}, which depends on its parameters"
    else:
        note = f"the processing times are those that the job {jobs[0].name} declares: {texts[0]}"
        return ProcessTimes(texts[0], app.project.job_scope(jobs[0]), note)
    return ProcessTimes(None, scope, f"the processing time is that of now: {why}", is_now=True)


def _needs_parameters(job: Job, text: str) -> bool:
    try:
        used = names_in(parse_template(text)) if "$" in text else frozenset()
    except LakewrightError:  # `validate` tells it
        return True
    return any(each.name in used for each in job.parameters)
