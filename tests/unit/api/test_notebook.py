"""D2: what a notebook shows of slices that were landed, rehearsed, undone or rebuilt, and of records."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, cast

import lakewright
from lakewright.errors import Fault
from lakewright.plan.phase import Phase
from lakewright.plan.reason import note
from lakewright.plan.status import Planned, Status
from lakewright.plan.step import InstancePlan, PhasePlan, Plan, Step
from lakewright.run.result import TargetResult
from lakewright.slices.landing import LandedSlice
from lakewright.slices.rewind.difference import TableDifference
from lakewright.usecases.look_back import BEFORE, RecordLife, RecordVersion, RowChange, SliceChanges
from lakewright.usecases.process_slices import RehearsedSlice
from lakewright.usecases.rewinds import Rebuilt, Undone

DIFFERENCE = TableDifference(7, 1, 1, ({"id": 1, "name": "<i>a</i>"},), ({"id": 1, "name": None},))
CHANGE = RowChange({"id": 1}, "updated", {"name": "<b>"}, {"name": "c&d"})


def test_a_landed_slice_is_a_row_with_its_place() -> None:
    landed = LandedSlice("orders", "<d1>", "/lake/orders/<d1>", "file:///x", 2, 512)
    assert landed._repr_html_() == (
        "<table><caption>Slice landed</caption>"
        "<tr><th>entity</th><th>slice</th><th>files</th><th>bytes</th><th>folder</th></tr>"
        "<tr><td>orders</td><td>&lt;d1&gt;</td><td>2</td><td>512</td><td>/lake/orders/&lt;d1&gt;</td></tr></table>"
    )


def test_an_undo_shows_the_rows_that_go_and_what_becomes_of_the_table_and_its_slices() -> None:
    foreign = SimpleNamespace(version=4, operation="<UPDATE>")
    state = SimpleNamespace(version=5)
    replay = SimpleNamespace(
        base=2,
        slices=(),
        names=[],
        changes_table=True,
        state=state,
        skipped_names=[],
        foreign=(foreign,),
    )
    plan = SimpleNamespace(slice="d3", replay=replay, repeated=(), is_requeued=False)
    html = Undone("orders", cast("Any", plan), DIFFERENCE)._repr_html_()
    assert "<caption>Undone orders/d3 planned: 1 row gone, 1 new, 7 equal</caption>" in html
    assert "<td>goes</td><td>id=1, name=&lt;i&gt;a&lt;/i&gt;</td>" in html
    assert "<td>comes back</td><td>id=1, name=null</td>" in html
    assert "<p>the table goes from version 5 back to version 2</p><p>d3 is skipped</p>" in html
    assert html.endswith("<p>lost: version 4 (&lt;UPDATE&gt;) of another writer</p>")
    plan.repeated = ("d4", "d5")
    planned = Undone("orders", cast("Any", plan))._repr_html_()
    assert "<p>d4, d5 were processed more than once: each slice is applied once</p>" in planned


def test_a_rebuild_shows_the_rows_that_differ_and_the_commits_that_are_lost() -> None:
    foreign = (SimpleNamespace(version=4, operation="UPDATE"),)
    replay = SimpleNamespace(foreign=foreign, skipped_names=["d2"])
    plan = SimpleNamespace(replay=replay, requeued=(), missing=())
    html = Rebuilt("orders", cast("Any", plan), DIFFERENCE)._repr_html_()
    assert "<td>only in the old table</td><td>id=1, name=&lt;i&gt;a&lt;/i&gt;</td>" in html
    assert "<p>lost: version 4 (UPDATE)</p>" in html
    assert "<p>d2 was skipped: the new table has none of its changes</p>" in html
    assert (
        Rebuilt("orders", cast("Any", plan), None, 3)
        ._repr_html_()
        .startswith("<table><caption>Rebuilt orders done by version 3</caption></table>")
    )


def test_changes_and_rehearsals_show_records_before_and_after() -> None:
    row = "<td>updated</td><td>id=1</td><td>name=&lt;b&gt;</td><td>name=c&amp;d</td>"
    changes = SliceChanges("orders", "d3", "file:///d3", 3, None, ("d4",), 9, {"updated": 1}, (CHANGE,))
    assert repr(changes) == "<SliceChanges orders/d3 updated=1>"
    assert row in changes._repr_html_()
    assert changes._repr_html_().endswith(
        "<p>in one commit with d4: all changes are shown</p>"
        "<p>the undo or rebuild of version 9 has replaced rows of the table since</p>"
    )
    rehearsed = RehearsedSlice(
        entity="orders",
        slice="d3",
        item_id="file:///lake/d3",
        state="ready",
        strategy="merge",
        processing_time=datetime(2024, 5, 3, tzinfo=UTC),
        version=None,
        summary=None,
        counts={"updated": 1},
        rows=(CHANGE,),
        deletes=None,
        notes=("d2 is left out",),
        warnings=("<1> row was put aside",),
        error=None,
    )
    html = rehearsed._repr_html_()
    assert row in html
    assert html.endswith("<p>d2 is left out</p><p>&lt;1&gt; row was put aside</p><p>Nothing was written.</p>")


def test_the_life_of_a_record_shows_each_version_without_its_key() -> None:
    version = RecordVersion("2024-05-01", None, True, {"id": 1, "name": "<x>"}, "d1", "r1", 0)
    life = RecordLife("orders", {"id": "1"}, (version,), 2)
    assert repr(life) == "<RecordLife orders id=1: 1 version>"
    assert "<td>deleted</td><td>name=&lt;x&gt;</td><td>d1</td><td>r1</td>" in life._repr_html_()
    assert BEFORE.format(2) in life._repr_html_()


def test_targets_and_steps_are_shown_in_one_line_each() -> None:
    done = TargetResult("orders", "entity", Phase.BUILD, Status.SUCCESS, (note("1 slice"),))
    assert repr(done) == "<TargetResult BUILD orders SUCCESS: 1 slice>"
    assert repr(TargetResult("orders", "entity", Phase.BUILD, Status.SKIPPED)) == (
        "<TargetResult BUILD orders SKIPPED>"
    )
    step = Step(Phase.BUILD, "orders", "entity", Planned.WOULD_RUN, (note("1 slice"), note("forced")))
    assert repr(step) == "<Step BUILD orders WOULD_RUN: 1 slice; forced>"


def test_the_package_lists_its_public_names_before_they_are_used() -> None:
    assert dir(lakewright) == sorted([*lakewright.__all__, "errors", "testing"])


def test_a_plan_shows_what_an_operator_should_look_at() -> None:
    warning = Fault("rows of <m> were changed by another program", remedy="Build it again.")
    found = Step(
        Phase.BUILD, "m", "entity", Planned.CLEAN, (note("every slice was processed"),), notice=warning
    )
    instances = tuple(
        InstancePlan({"day": day}, (PhasePlan(Phase.BUILD, (found,)),))
        for day in ("2024-05-01", "2024-05-02")
    )
    html = Plan("shop", "daily", Phase.BUILD, instances)._repr_html_()
    assert html.count("<p>rows of &lt;m&gt; were changed by another program") == 1
    assert "Build it again." in html
