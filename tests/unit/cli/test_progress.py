"""The line that moves while a run goes on."""

from __future__ import annotations

from tests.unit.cli.surroundings import Screen, ended, step

from lakewright.cli.output import Output
from lakewright.cli.progress import LiveProgress
from lakewright.plan.status import Status


def test_it_names_what_is_at_hand_with_its_slice_and_how_long() -> None:
    now = [100.0]
    output = Output(Screen(), Screen(), {"TERM": "xterm"})
    progress = LiveProgress(output, lambda: now[0])
    assert progress.now().plain.endswith("0.0 s, planning")

    progress.step_started(0, step("regions"))
    now[0] = 103.0
    assert progress.now().plain.endswith("3.0 s, 0 done, BUILD regions 3.0 s")
    progress.slice_started("regions", "file:///lake/bronze/regions/2022-01-01")
    assert progress.now().plain.endswith("BUILD regions slice 2022-01-01 3.0 s")

    progress.step_finished(0, step("regions"), ended("regions"))
    assert progress.now().plain.endswith("3.0 s, 1 done")


def test_only_what_ran_or_failed_leaves_a_line() -> None:
    screen = Screen()
    progress = LiveProgress(Output(Screen(), screen, {"NO_COLOR": "1"}))
    progress.step_started(0, step("ran"))
    for name, status in (("ran", Status.SUCCESS), ("clean", Status.SKIPPED), ("held", Status.BLOCKED)):
        progress.step_finished(0, step(name), ended(name, status))
    shown = [text.split()[:3] for text in screen.getvalue().splitlines()]
    assert shown == [["SUCCESS", "BUILD", "ran"], ["BLOCKED", "BUILD", "held"]]
