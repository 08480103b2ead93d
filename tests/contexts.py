"""What targets are given to work with, over a store in memory, for tests."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from lakewright.manifest.lease import Holder, Leases
from lakewright.manifest.ledger import Ledger
from lakewright.manifest.record import Agent, Author
from lakewright.manifest.store import Store
from lakewright.stores.memory import MemoryStore
from lakewright.targets.context import Context, RunOptions, TargetDefaults
from lakewright.workspace.workspace import Workspace

NUMBERS = itertools.count(1)


def make_context(
    workspace: Workspace,
    *,
    store: Store | None = None,
    run_id: str = "run-1",
    options: RunOptions | None = None,
    say: Callable[[str], None] = print,
    warn: Callable[[str], None] = lambda _: None,
    lease: timedelta = timedelta(seconds=60),
) -> Context:
    """Return the context of a run over `workspace`, with the settings of its project."""
    store = store or MemoryStore()

    def new_id() -> str:
        return f"id-{next(NUMBERS)}"

    holder = Holder("here", 1, "then", run_id)
    return Context(
        workspace=workspace,
        ledger=Ledger(store, Author(Agent("tests", "1")), ids=new_id),
        leases=Leases(store, holder, new_id, lease),
        clock=lambda: datetime(2022, 1, 1, tzinfo=UTC),
        run_id=run_id,
        say=say,
        warn=warn,
        show=warn,
        options=options or RunOptions(),
        defaults=TargetDefaults.of(workspace.project.config),
    )
