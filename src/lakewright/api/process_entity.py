"""The slices of an entity, processed as one run that is logged."""

from __future__ import annotations

from lakewright.api.opened import Opened
from lakewright.api.watching import Watcher, watched
from lakewright.plan.permissions import NO_PERMISSIONS, Permissions
from lakewright.slices.result import ProcessResult
from lakewright.usecases.process_slices import process_slices

__all__ = ["process_entity"]


def process_entity(
    opened: Opened,
    entity: str,
    slice: str | None = None,
    *,
    strategy: str | None = None,
    processing_time: str | None = None,
    is_time_lenient: bool = False,
    permissions: Permissions = NO_PERMISSIONS,
    wait: bool = False,
) -> ProcessResult:
    """Process an entity's pending slices, or one of them, as one run; `process_slices` has the rules."""
    app = opened.app
    with opened.run() as run_id, watched(app, Watcher(run_id)):
        return process_slices(
            app,
            entity,
            slice,
            strategy=strategy,
            processing_time=processing_time,
            is_time_lenient=is_time_lenient,
            permissions=permissions,
            wait=wait,
        )
