"""Process the pending slices of one entity, without a job."""

from __future__ import annotations

import logging
from dataclasses import replace

from lakewright.app import App
from lakewright.errors import UsageError
from lakewright.lake.tracing import span
from lakewright.plan.permissions import NO_PERMISSIONS, Permissions
from lakewright.run.execute import Interruption
from lakewright.slices.context import ProcessingOptions, strategy_of
from lakewright.slices.discover import settle_of
from lakewright.slices.process import process_pending
from lakewright.slices.result import ProcessResult
from lakewright.spec.models.entity import Entity
from lakewright.target_contexts import target_contexts
from lakewright.targets.entity.maintenance import maintain
from lakewright.targets.entity.work import processing_context
from lakewright.usecases.command_lineage import told_command
from lakewright.usecases.session_check import check_session
from lakewright.usecases.slice_times import process_times

__all__ = ["process_slices"]

log = logging.getLogger(__name__)


def process_slices(
    app: App,
    entity: str,
    slice: str | None = None,
    *,
    strategy: str | None = None,
    processing_time: str | None = None,
    is_time_lenient: bool = False,
    permissions: Permissions = NO_PERMISSIONS,
    wait: bool = False,
    interruption: Interruption | None = None,
) -> ProcessResult:
    """Process an entity's pending slices, or one of them, then maintain the table if so configured.

    Args:
        app: The project.
        entity: Name or id of the entity.
        slice: Name of the slice; without it, every slice that is ready.
        strategy: `full`, `merge` or `historic`, used instead of the entity's own.
        processing_time: ISO 8601 text, or an expression over the slice. By default it is the one that all
            jobs declare for the entity's slices, or the current time.
        is_time_lenient: Whether a text that is no time is only warned of, and the current time is used.
        permissions: Actions to allow that are refused by default.
        wait: Wait for slices that another run is processing.
        interruption: Checked between slices; shows whether to stop.

    Raises:
        SpecError, UsageError: There is no such entity, slice or strategy, the entity is disabled, or the
            processing time is no time.
        BackdatedError: The processing time is not later than the table's.
        SparkUnavailable: The Spark session of this process has no Delta Lake; nothing was claimed.
    """
    found = app.project.entity(entity)
    if not found.enabled:
        raise UsageError(
            f"the entity {found.name!r} is disabled",
            remedy="Set enabled: true where it, or its connection, is declared.",
        )
    check_session(app)
    app.make_store()
    times = process_times(app, found, processing_time)
    if times.is_now:
        log.warning("%s: %s", found.name, times.note)
    options = ProcessingOptions(
        strategy=strategy_of(strategy),
        processing_time=times.text,
        scope=times.scope,
        is_time_lenient=is_time_lenient,
        permissions=permissions,
        wait=wait,
        settle=settle_of(app.project.config),
    )
    context = target_contexts(app, interruption=interruption)(app.workspace)
    with (
        told_command(app, "process", found) as told,
        span(f"process {found.name}", entity=found.name, run=app.run_id),
    ):
        result = process_pending(processing_context(context, found, options), found, slice=slice)
        told.status, told.error = result.status, next(iter(result.faults), None)
        told.metrics = {"slices": [one.as_json() for one in result.slices]}
    if times.note is not None and result.slices:
        result = replace(result, notes=(times.note, *result.notes))
    if result.slices and result.error is None and not result.is_stopped:
        _maintain(app, found)
    return result


def _maintain(app: App, entity: Entity) -> None:
    if not entity.settings.maintenance.enabled:
        return
    try:
        maintain(app.lake, app.leases(), entity)
    except Exception as error:  # a maintenance error must not fail slices that are already committed
        log.warning("%s: maintenance failed, and the next run tries again: %s", entity.name, error)
