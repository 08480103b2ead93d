"""What a target is given to work with: the workspace, the stores and what the run was asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from lakewright.manifest.ledger import Takeover
from lakewright.plan.permissions import Permissions
from lakewright.targets.defaults import TargetDefaults

if TYPE_CHECKING:
    from lakewright.manifest.leases import Leases
    from lakewright.manifest.ledger import Ledger
    from lakewright.workspace.workspace import Workspace

__all__ = ["Context", "RunOptions"]


@dataclass(frozen=True, slots=True)
class RunOptions:
    """What the run was asked for.

    Attributes:
        permissions: What the run may do that is refused by default.
        wait: Leases of others are waited for.
        preview: Looking counts the deletes that the next slices imply.
    """

    permissions: Permissions = field(default_factory=Permissions)
    wait: bool = False
    preview: bool = False


@dataclass(frozen=True, slots=True)
class Context:
    """What targets of one instance share.

    Attributes:
        clock: The time now, with a zone.
        say: Prints a line of a target's own output.
        warn: Takes a warning.
        redact: Takes the project's secrets out of a text.
        takeover: Who may take over a stale lock.
        is_stopping: Tells whether the run is to stop: what is begun is finished, nothing more is begun.
        is_cut_off: Tells whether what is begun was made to end at once, so that it is no failure.
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
    redact: Callable[[str], str] = str
    takeover: Takeover = Takeover.AUTO
    is_stopping: Callable[[], bool] = lambda: False
    is_cut_off: Callable[[], bool] = lambda: False
