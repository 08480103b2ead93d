"""The context that targets work in: workspace, manifest, leases and the options of the run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from lakewright.manifest.ledger import Takeover
from lakewright.plan.permissions import Permissions
from lakewright.targets.defaults import TargetDefaults

if TYPE_CHECKING:
    from lakewright.manifest.lease import Leases
    from lakewright.manifest.ledger import Ledger
    from lakewright.slices.result import SliceReport
    from lakewright.workspace.workspace import Workspace

__all__ = ["Context", "RunOptions"]


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Options of a run.

    Attributes:
        permissions: Actions that the run may take although they are refused by default.
        wait: Whether to wait for leases and locks of other runs.
        preview: Whether observing counts the deletes that the next slice implies.
    """

    permissions: Permissions = field(default_factory=Permissions)
    wait: bool = False
    preview: bool = False


@dataclass(frozen=True, slots=True)
class Context:
    """What the targets of one instance share.

    Attributes:
        clock: Returns the present instant, with a time zone.
        say: Prints a line of a target's output.
        defaults: Values for what a target does not declare.
        warn: Shows a warning, and records it with the result of the step.
        show: Shows a warning that the result of the step has by itself, such as one of a slice.
        report: Reports the end of a slice.
        redact: Replaces the project's secrets in a text.
        takeover: Who may take over a stale lock.
        append_id: The identity of the append of the step that runs; None if it has none.
        is_stopping: Returns whether the run was asked to stop; work in progress is finished, none is started.
        is_cut_off: Returns whether work in progress was cancelled; its errors then do not count as failures.
    """

    workspace: Workspace
    ledger: Ledger
    leases: Leases
    clock: Callable[[], datetime]
    run_id: str
    say: Callable[[str], None]
    options: RunOptions = field(default_factory=RunOptions)
    defaults: TargetDefaults = field(default_factory=TargetDefaults)
    warn: Callable[[str], None] = lambda _: None
    show: Callable[[str], None] = lambda _: None
    report: Callable[[SliceReport], None] = lambda _: None
    redact: Callable[[str], str] = str
    takeover: Takeover = Takeover.AUTO
    append_id: str | None = None
    is_stopping: Callable[[], bool] = lambda: False
    is_cut_off: Callable[[], bool] = lambda: False
