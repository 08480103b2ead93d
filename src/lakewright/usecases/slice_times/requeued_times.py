"""Whether the declared processing times of requeued slices are earlier than the table's versions.

A requeued slice of a Historic entity is processed again with the time that its target declares. If that is
the slice's own date, the table has later versions, and the run refuses it: the rules of the processing time
hold for requeued slices, too. Whoever requeues is to know it then.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple

from lakewright.app import App
from lakewright.errors import LakewrightError
from lakewright.slices.other_runs import (
    declared_strategy,
    declared_time,
    find_other_runs,
    processing_jobs,
)
from lakewright.slices.processing_time import ProcessingTimes
from lakewright.slices.time_check import early_note, unknown_time_note
from lakewright.spec.expressions.scope import Scope
from lakewright.spec.models.entity import Entity, Strategy
from lakewright.usecases.slice_times.target_times import placement_of
from lakewright.usecases.staleness.readers import dependents

__all__ = ["requeued_time_note"]


def requeued_time_note(app: App, entity: Entity, names: Sequence[str]) -> str | None:
    """Return that the next run refuses the processing times of slices, with the commands to type.

    A time may need a parameter that no slice tells: then that is said, with the time that must be exceeded.
    None if the run takes them.

    Args:
        app: The project.
        entity: Their entity.
        names: The slices, in the order of processing.
    """
    unknown = None
    for text, scope in _declared_times(app, entity, names):
        times = ProcessingTimes(text, app.project.lake.zone, scope, is_lenient=False, warn=lambda _: None)
        try:
            note = _note(app, entity, names, times)
        except LakewrightError:  # the run tells it: this is only a forecast
            continue
        if note is not None and note.is_sure:
            return note.text
        unknown = unknown or note
    return None if unknown is None else unknown.text


class _Note(NamedTuple):
    text: str
    is_sure: bool


def _note(app: App, entity: Entity, names: Sequence[str], times: ProcessingTimes) -> _Note | None:
    try:
        times.at(names[0])
    except LakewrightError:
        text = unknown_time_note(app.lake, entity, str(times.text))
        return None if text is None else _Note(text, is_sure=False)
    text = early_note(app.lake, entity, names, times, placement=placement_of(app, entity))
    return None if text is None else _Note(text, is_sure=True)


def _declared_times(app: App, entity: Entity, names: Sequence[str]) -> Iterator[tuple[str, Scope]]:
    """Yield the times that targets of the strategy Historic declare, with the names that these may use."""
    runs = {
        run.job: run
        for run in find_other_runs(app.project, entity.called, names[:1], partial(dependents, app))
    }
    for job, declared in processing_jobs(app.project, entity.called):
        text = declared_time(declared)
        if text is not None and declared_strategy(declared, entity) is Strategy.HISTORIC:
            given = dict(runs[job.name].parameters) if job.name in runs else {}
            yield text, app.project.job_scope(job, given)
