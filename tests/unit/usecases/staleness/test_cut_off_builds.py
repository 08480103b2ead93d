"""What a run had written before it was cut off is out of date, too, once what it read has changed."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.unit.serve.slices import discover, process
from tests.unit.usecases.staleness.test_downstream import built
from tests.unit.usecases.staleness.test_emptied import lake

from lakewright.app import App
from lakewright.manifest.journal import KeptRows, Run, Taint, TargetPhase
from lakewright.manifest.store import Write
from lakewright.run.kept_rows import may_have_added
from lakewright.targets.writing import WritingTarget
from lakewright.usecases.staleness.downstream import downstream_taints, taint_after_processing
from lakewright.usecases.staleness.tainted_targets import tainted_targets

DAY, NEXT = {"day": "2022-01-01"}, {"day": "2022-01-02"}
ADDS = "a build adds its rows to those that are there (mode APPEND)"
TRUNCATED = "lakewright job daily truncate -t added day=2022-01-02 --yes"


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


@pytest.mark.parametrize("has_landed", [True, False])
def test_an_append_that_had_landed_must_be_emptied_after_an_undo_and_keeps_its_identity(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_landed: bool
) -> None:
    """`--resume` found the rows of before, added none, and nothing was told."""
    app = lake(tmp_path)
    built(app, "daily", ("orders", "added"), hours_ago=3, **DAY)
    run = cut_off(app, "added", append_id="the append")
    monkeypatch.setattr(WritingTarget, "has_appended", lambda *_: has_landed)
    found = undone(app)["added"]
    told = (found.run_id, found.kept and found.kept.why, found.append_id)
    if has_landed:
        assert told == (None, f"went back, and {ADDS}", "the append")
        commands = {each.target: each.commands for each in tainted_targets(app)}
        assert commands["added"][0] == (
            "lakewright job daily truncate -t added day=2022-01-01,2022-01-02 --yes"
        )
    else:
        assert told == (run.run_id, None, "the append")
    app.close()


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


def test_a_slice_that_comes_after_an_append_was_cut_off_makes_it_out_of_date(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = lake(tmp_path)
    cut_off(app, "added", append_id="the append")
    monkeypatch.setattr(WritingTarget, "has_appended", lambda *_: True)
    (item,) = discover(app, "orders", ["2022-01-02.csv"])
    process(app, item)
    assert taint_after_processing(app, app.project.entity("orders"), [item.item_id]) is None
    (found,) = (each for each in app.journal.taints("shop") if each.place.target == "added")
    assert found.append_id == "the append"
    assert str(found.kept and found.kept.why).startswith(
        "2022-01-02.csv of orders was processed since it was built"
    )
    assert {each.target: each for each in tainted_targets(app)}["added"].commands[0] == TRUNCATED
    app.close()
