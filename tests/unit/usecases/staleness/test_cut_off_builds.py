"""What a run had written before it was cut off is out of date, too, once what it read has changed."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

from tests.unit.usecases.staleness.test_emptied import lake

from lakewright.app import App
from lakewright.manifest.journal import KeptRows, Run, Taint, TargetPhase
from lakewright.manifest.store import Write
from lakewright.run.kept_rows import may_have_added
from lakewright.usecases.staleness.downstream import downstream_taints

DAY, NEXT = {"day": "2022-01-01"}, {"day": "2022-01-02"}
ADDS = "a build adds its rows to those that are there (mode APPEND)"


def cut_off(app: App, name: str, status: str = "ABORTED", **told: Any) -> Run:
    """Record a run of the next day that left a target undone."""
    app.begin_run()
    at = app.store.now() - timedelta(hours=1)
    run = app.journal.start_run(Run(app.run_id, "shop", "daily", "BUILD", NEXT, at, app.holder))
    place = TargetPhase("shop", name, "BUILD", NEXT)
    app.store.write(Write(puts=(place.tainted("was left undone", run.run_id, **told),)))
    app.journal.abort_run(run)
    if status != "ABORTED":
        entry = {"name": name, "phase": "BUILD", "status": status, "instance": NEXT, "reasons": []}
        app.journal.record_targets(run, {0: entry})
    return run


def undone(app: App) -> dict[str, Taint]:
    """Return the taints of the next day after an undo of a slice of the table."""
    app.store.write(Write(puts=downstream_taints(app, app.project.entity("orders"), "went back")))
    return {e.place.target: e for e in app.journal.taints("shop") if dict(e.place.parameters) == NEXT}


def test_what_may_have_been_added_or_merged_counts_and_what_was_not_begun_does_not(tmp_path: Path) -> None:
    app = lake(tmp_path)
    run = cut_off(app, "added", kept=may_have_added("killed", "a build adds them"))
    found = undone(app)["added"]
    assert (found.reason, found.kept) == ("went back", KeptRows(f"went back, and {ADDS}"))
    for taint in (*app.journal.taints("shop"),):
        app.store.write(Write(puts=(taint.place.untainted(),)))

    cut_off(app, "added")  # it says when it begins
    assert undone(app)["added"].kept is None
    cut_off(app, "merged", status="BLOCKED")
    assert undone(app)["merged"].kept is None
    cut_off(app, "merged")
    assert (undone(app)["merged"].kept or KeptRows("")).why.startswith(
        "went back, and a merge takes out no rows"
    )
    assert app.journal.run(run.run_id) is not None
    app.close()
