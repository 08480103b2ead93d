"""The commands of `status` can be typed from top to bottom: silver comes before gold."""

from __future__ import annotations

from datetime import UTC, datetime
from unittest import mock

from tests.unit.cli.surroundings import FakeApp, call_with

from lakewright.errors import Fault
from lakewright.errors.phrase import Command
from lakewright.manifest.journal import Run
from lakewright.manifest.lease import Holder
from lakewright.usecases.damage.rebuild_status import DueRebuild
from lakewright.usecases.project_status import ProjectStatus
from lakewright.usecases.staleness.tainted_targets import TaintedTarget

NOW = datetime(2024, 5, 1, tzinfo=UTC)
RUN = Run("r1", "shop", "daily", "BUILD", {}, NOW, Holder("here", 1, "then", "r1", "ada"), status="FAILED")


def fault(name: str, **details: object) -> Fault:
    return Fault(name, remedy=f"mend {name}", details={"subject": name, "commands": [name], **details})


SILVER, GOLD = fault("damaged silver", is_silver=True), fault("damaged gold")
REBUILD = DueRebuild("orders", "it lacks a column", True, Command("rebuild", "orders", "--yes"))
CHANGED_ROWS, CHANGED_SLICE = fault("changed rows"), fault("changed slice", changed=["x"])
LOST, UNREADABLE = fault("lost partition"), fault("unreadable bronze")


def test_status_tells_of_silver_before_the_runs_and_targets_that_read_it() -> None:
    """A job that built a target stood above the rebuild of the table that it reads.

    So did `--resume` above the table that it could not create, as another file was in its place.
    """
    found = ProjectStatus(
        running=(),
        locked=(),
        stale=(),
        failed=(),
        waiting=(),
        undone=(RUN,),
        warned=(),
        last_runs=(),
        changed=(CHANGED_SLICE,),
        unreadable=(UNREADABLE,),
        rebuilds=(REBUILD,),
        rows_changed=(CHANGED_ROWS,),
        damaged=(SILVER, GOLD),
        lost=(LOST,),
        tainted=(TaintedTarget("sales", "built from orders", (), (Command("job", "daily", "build"),)),),
    )
    with mock.patch("lakewright.usecases.status.project_status", return_value=found):
        page = call_with(FakeApp(), "status").out
    titles = [text.rsplit(" ", 1)[0] for text in page.splitlines() if text and not text.startswith(" ")]
    assert titles == [
        "Bronze that can't be read",
        "Tables that can't be read",
        "Tables that need a rebuild",
        "Tables that another program has changed",
        "Changed since they were processed",
        "Tables of targets that can't be read",
        "Tables that are gone, or lack what was built",
        "Runs that failed",
        "Targets to build again",
    ]
