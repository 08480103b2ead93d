"""Checks whether the expressions in the hooks and the metrics of a job can be evaluated."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import cast

from lakewright.errors import Fault, SpecError
from lakewright.run.hooks.event import VARIABLES, Hook
from lakewright.spec.expressions.scope import Scope
from lakewright.spec.models.job import Job

__all__ = ["METRIC_LABELS", "notification_faults"]

METRIC_LABELS = ("category", "kind", "name", "phase", "project", "status", "version")
"""Names that every metric brings for the labels of a board."""


def notification_faults(job: Job, scope: Scope, *, has_measures: bool) -> Iterator[Fault]:
    """Yield a fault for each expression of a job's hooks and metrics that can't be evaluated.

    Args:
        job: The job.
        scope: The names of one of its instances.
        has_measures: Whether the job has measures, whose metrics bring labels that are not known before a
            run; names of a board that nothing declares then count as such labels.
    """
    names = {name: "" for name in VARIABLES if name not in scope.names}
    for number, hook in enumerate(job.hooks, 1):
        where = f"job {job.name!r}: hook {number} ({hook.kind})"
        for text in cast("Hook", hook).texts():
            yield from _faults(where, text, scope.child(names))
    if job.metrics is None:
        return
    labels = {name: "" for name in METRIC_LABELS if name not in scope.names}
    for label, text in _board(job):
        found = tuple(_faults(f"job {job.name!r}: label {label!r} of its metrics", text, scope.child(labels)))
        yield from (each for each in found if not (has_measures and "unknown_name" in each.details))


def _board(job: Job) -> Iterator[tuple[str, str]]:
    if job.metrics is not None:
        parts: tuple[Mapping[str, str], ...] = (job.metrics.labels, *(m.labels for m in job.metrics.metrics))
        for labels in parts:
            yield from labels.items()


def _faults(where: str, text: str, scope: Scope) -> Iterator[Fault]:
    try:
        scope.render(text)
    except SpecError as error:
        for fault in error.faults:
            yield replace(fault, message=f"{where}: {fault.message}")
