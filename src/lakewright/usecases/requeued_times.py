"""Whether the declared processing times of requeued slices are earlier than the table's versions.

A requeued slice of a Historic entity is processed again with the time that its target declares. If that is
the slice's own date, the table has later versions, and the run refuses it: the rules of the processing time
hold for requeued slices, too. Whoever requeues is to know it then.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lakewright.app import App
from lakewright.errors import LakewrightError
from lakewright.slices.other_runs import find_other_runs, processing_jobs
from lakewright.slices.processing_time import ProcessingTimes
from lakewright.slices.time_check import early_note
from lakewright.spec.expressions.scope import Scope
from lakewright.spec.models.entity import Entity, Strategy

__all__ = ["requeued_time_note"]


def requeued_time_note(app: App, entity: Entity, names: Sequence[str]) -> str | None:
    """Return that the next run refuses the processing times of slices, with the commands to type.

    None if it takes them, or if that is not known: a time may need a parameter that no slice tells.

    Args:
        app: The project.
        entity: Their entity.
        names: The slices, in the order of processing.
    """
    if entity.strategy is not Strategy.HISTORIC:
        return None
    for text, scope in _declared_times(app, entity, names):
        times = ProcessingTimes(text, app.project.lake.zone, scope, is_lenient=False, warn=lambda _: None)
        try:
            note = early_note(app.lake, entity, names, times)
        except LakewrightError:  # the run tells it: this is only a forecast
            continue
        if note is not None:
            return note
    return None


def _declared_times(app: App, entity: Entity, names: Sequence[str]) -> Iterator[tuple[str, Scope]]:
    """Yield the processing times that targets declare for an entity, with the names that they may use."""
    runs = {run.job: run for run in find_other_runs(app.project, entity.called, names[:1])}
    for job, declared in processing_jobs(app.project, entity.called):
        text = declared.get("processingTime", declared.get("processing_time"))
        if text is not None:
            given = dict(runs[job.name].parameters) if job.name in runs else {}
            yield str(text), app.project.job_scope(job, given)
