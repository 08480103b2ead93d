"""The line that moves while a run goes on."""

from __future__ import annotations

from tests.unit.cli.surroundings import Screen, ended, step
from tests.unit.cli.test_manifest import HOLDER, ITEM, a_lake

from lakewright.cli.output import Output
from lakewright.cli.progress import LiveProgress, SlicesInProgress
from lakewright.manifest.lease import Leases
from lakewright.plan.status import Status


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
    assert (ours(), others()) == (("orders/c",), ())
    app.ledger.release(f"{ITEM}c", "done", is_forced=True)
    assert ours() == ("orders/c",)
    now[0] = 1.0
    assert ours() == ()


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
