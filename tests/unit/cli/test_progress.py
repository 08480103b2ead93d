"""The line that moves while a run goes on."""

from __future__ import annotations

from tests.unit.cli.surroundings import Screen, ended, step
from tests.unit.cli.test_manifest import HOLDER, ITEM, a_lake

from lakewright.cli.output import Output
from lakewright.cli.progress import LiveProgress, SlicesDue, SlicesInProgress
from lakewright.due.time_left import TimedSlice
from lakewright.manifest.lease import Leases
from lakewright.plan.status import Status
from lakewright.slices.result import SliceReport, SliceResult
from lakewright.spec.models.entity import Strategy
from lakewright.strategies.summary import Summary
from lakewright.usecases.due.work_done import Pace


def test_it_names_what_is_at_hand_and_how_long() -> None:
    now = [100.0]
    slices: list[str] = []
    output = Output(Screen(), Screen(), {"TERM": "xterm"})
    progress = LiveProgress(output, lambda: tuple(slices), clock=lambda: now[0])
    assert progress.now().plain.endswith("0.0 s, checking what there is to do")

    progress.step_started(0, step("regions"))
    slices.append("regions/2022-01-01")
    now[0] = 103.0
    assert progress.now().plain.endswith("3.0 s, 0 done, BUILD regions 3.0 s, slice regions/2022-01-01")

    progress.step_finished(0, step("regions"), ended("regions"))
    slices.clear()
    assert progress.now().plain.endswith("3.0 s, 1 done")


def test_slices_at_hand_are_those_that_the_run_has_locked() -> None:
    now = [0.0]
    app = a_lake()
    leases = Leases(app.store, HOLDER, app.ids)
    leases.acquire("write file:/lake/gold/x")
    ours, others = (SlicesInProgress(app.store, run, lambda: now[0]) for run in (HOLDER.run_id, "run-2"))
    assert (ours(), others()) == ((f"{ITEM}c",), ())
    app.ledger.release(f"{ITEM}c", "done", is_forced=True)
    assert ours() == (f"{ITEM}c",)
    now[0] = 1.0
    assert ours() == ()


def test_slices_that_are_due_are_counted_and_what_is_left_is_estimated() -> None:
    now = [0.0]
    due = SlicesDue(clock=lambda: now[0])
    ids = [f"{ITEM}{number}" for number in range(4)]
    due.expect(Pace(dict.fromkeys(ids, 100)))
    assert due.texts((ids[0], f"{ITEM}other")) == ["slice 1 of 4: orders/0", "slice orders/other"]
    now[0] = 2.0
    summary = Summary(Strategy.MERGE, records_in_slice=1200, seconds=2.0)
    due.slice_ended(SliceReport("orders", "0", ids[0], SliceResult("0", ids[0], summary)))
    assert due.texts(ids[:2]) == ["slice 2 of 4, about 6 s left, 1,200 rows: orders/1"]
    now[0] = 3.0
    assert due.texts(ids[1:2]) == ["slice 2 of 4, about 5 s left, 1,200 rows: orders/1"]
    due.slice_ended(SliceReport("orders", "1", ids[1]))
    assert due.texts(ids[2:]) == ["slices 3 to 4 of 4, about 4 s left, 1,200 rows: orders/2"]
    now[0] = 9.0
    assert due.texts(ids[2:]) == ["slices 3 to 4 of 4, 1,200 rows: orders/2"]


def test_slices_that_were_processed_before_tell_how_long_the_first_one_takes() -> None:
    due = SlicesDue(clock=lambda: 0.0)
    due.expect(Pace({f"{ITEM}0": 100, f"{ITEM}1": 100}, (TimedSlice(100, 65.0),)))
    assert due.texts((f"{ITEM}0",)) == ["slice 1 of 2, about 2 min 10 s left: orders/0"]


def test_only_what_ran_or_failed_leaves_a_line() -> None:
    screen = Screen()
    progress = LiveProgress(Output(Screen(), screen, {"NO_COLOR": "1"}), tuple)
    progress.step_started(0, step("ran"))
    for name, status in (("ran", Status.SUCCESS), ("clean", Status.SKIPPED), ("held", Status.BLOCKED)):
        progress.step_finished(0, step(name), ended(name, status))
    shown = [text.split()[:3] for text in screen.getvalue().splitlines()]
    assert shown == [["SUCCESS", "BUILD", "ran"], ["BLOCKED", "BUILD", "held"]]


def test_the_start_of_spark_is_a_line_of_its_own() -> None:
    """C2: it is not hidden in the phase that needs Spark first."""
    now = [10.0]
    screen = Screen()
    progress = LiveProgress(Output(Screen(), screen, {"NO_COLOR": "1"}), tuple, clock=lambda: now[0])
    with progress.spark_starting():
        now[0] = 14.0
        assert progress.now().plain.endswith("starting Spark 4.0 s")
    assert screen.getvalue() == "Spark started 4.0 s\n"
    assert "Spark" not in progress.now().plain
