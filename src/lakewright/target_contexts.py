"""What the targets of a run are given of an open project."""

from __future__ import annotations

import logging
from collections.abc import Callable

from lakewright.app import App
from lakewright.manifest.settings import takeover
from lakewright.manifest.store import Store
from lakewright.run.execution import Interruption
from lakewright.slices.result import SliceReport
from lakewright.targets.context import Context, RunOptions, TargetDefaults
from lakewright.workspace.workspace import Workspace

log = logging.getLogger(__name__)


def target_contexts(
    app: App,
    options: RunOptions | None = None,
    store: Store | None = None,
    interruption: Interruption | None = None,
) -> Callable[[Workspace], Context]:
    """Return a function that makes targets' contexts from workspaces; by default with the manifest.

    Args:
        app: The project.
        options: The options of the run.
        store: The manifest.
        interruption: Shows whether to stop.
    """
    store = store or app.store

    def report(slice_: SliceReport) -> None:
        text = app.redactor.text(str(slice_))
        log.info("%s", text, extra={"run_id": app.run_id, "item": slice_.item_id})
        if not slice_.is_beside:
            app.on_slice(slice_)

    def context(workspace: Workspace) -> Context:
        return Context(
            workspace=workspace,
            ledger=app.ledger_of(store),
            leases=app.leases(store),
            clock=app.clock,
            run_id=app.run_id,
            say=app.say,
            options=options or RunOptions(),
            defaults=TargetDefaults.of(app.project.config),
            takeover=takeover(app.project.manifest),
            is_stopping=lambda: interruption is not None and interruption.signal is not None,
            warn=log.warning,
            show=log.warning,
            report=report,
            redact=app.redactor.text,
            maintain_later=app.maintain_later,
        )

    return context
