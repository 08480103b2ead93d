"""D2: events of a run, log lines, and results as notebooks and callers see them."""

from __future__ import annotations

import logging
import re
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial

import pytest

import lakewright
from lakewright.api.open_project import RunEvent, Watcher
from lakewright.errors import Fault, RunFailed, SliceError
from lakewright.notebook import html_table
from lakewright.plan.phase import Phase
from lakewright.plan.reason import note
from lakewright.plan.status import Planned, Status
from lakewright.plan.step import InstancePlan, PhasePlan, Plan, Step
from lakewright.run.result import InstanceResult, PhaseResult, RunResult, TargetResult
from lakewright.slices.result import ProcessResult, SliceReport

STEP = Step(Phase.BUILD, "orders", "entity", Planned.WOULD_RUN, (note("<b>1</b> slice"),))
DONE = TargetResult("orders", "entity", Phase.BUILD, Status.SUCCESS, (note("1 slice"),), seconds=1.25)
NOW = datetime(2024, 5, 1, tzinfo=UTC)


def result(*targets: TargetResult, **parameters: str) -> RunResult:
    instance = InstanceResult(parameters or {"day": "2024-05-01"}, (PhaseResult(Phase.BUILD, targets),))
    return RunResult("r1", "shop", "daily", Phase.BUILD, NOW, NOW, (instance,))


def test_events_name_instance_phase_target_and_result(caplog: pytest.LogCaptureFixture) -> None:
    events: list[RunEvent] = []
    redact = partial(re.sub, "secret1", "***")
    watcher = Watcher("r1", [{"day": "2024-05-01"}], events.append, redact)
    with caplog.at_level(logging.INFO, "lakewright"):
        watcher.step_started(0, STEP)
        watcher.step_finished(0, STEP, DONE)
        watcher.step_finished(0, STEP, replace(DONE, status=Status.FAILED, error=Fault("no secret1")))
        watcher.slice_ended(SliceReport("orders", "s1", "file:///s1"))
    assert [(event.kind, event.instance, dict(event.parameters), event.target) for event in events] == [
        ("started", 0, {"day": "2024-05-01"}, "orders"),
        ("finished", 0, {"day": "2024-05-01"}, "orders"),
        ("finished", 0, {"day": "2024-05-01"}, "orders"),
        ("slice", None, {}, "orders"),
    ]
    assert events[1].result is DONE
    assert [record.getMessage() for record in caplog.records] == [
        "day=2024-05-01 BUILD orders started",
        "day=2024-05-01 BUILD orders ended: SUCCESS in 1.2 s",
        "day=2024-05-01 BUILD orders ended: FAILED in 1.2 s: no ***",
    ]
    assert [record.levelname for record in caplog.records] == ["INFO", "INFO", "ERROR"]
    assert vars(caplog.records[0])["target"] == "orders"


def test_an_error_of_on_event_is_logged_and_does_not_end_the_run(caplog: pytest.LogCaptureFixture) -> None:
    def fail(event: RunEvent) -> None:
        raise ValueError(event.kind)

    with caplog.at_level(logging.INFO, "lakewright"):
        Watcher("r1", [], fail).step_started(0, STEP)
    assert "on_event failed for started of orders" in caplog.text
    (record,) = (record for record in caplog.records if record.levelno >= logging.WARNING)
    assert record.exc_info is not None
    assert str(record.exc_info[1]) == "started"


def test_lakewright_is_silent_until_logging_is_set_up() -> None:
    assert lakewright.__doc__
    handlers = logging.getLogger("lakewright").handlers
    assert any(isinstance(handler, logging.NullHandler) for handler in handlers)


def test_check_returns_a_success_and_raises_the_first_error_of_a_failure() -> None:
    assert result(DONE).check().is_success
    fault = Fault("a key is double", remedy="Mend it.")
    failed = replace(DONE, name="prices", status=Status.FAILED, error=fault)
    undone = replace(DONE, name="gold", status=Status.BLOCKED, reasons=(note("prices failed"),))
    with pytest.raises(RunFailed) as raised:
        result(DONE, undone, failed).check()
    assert raised.value.message == "daily build ended FAILED: prices in BUILD: a key is double"
    assert raised.value.remedy == "Mend it."
    assert raised.value.details == {"run_id": "r1", "status": "FAILED", "undone": 2}


def test_notebooks_show_results_as_tables_of_escaped_text_without_secrets() -> None:
    phase = PhasePlan(Phase.BUILD, (STEP,))
    plan = Plan("shop", "daily", Phase.BUILD, (InstancePlan({"password": "x1y2", "day": "<d>"}, (phase,)),))
    html = plan._repr_html_()
    assert "&lt;b&gt;1&lt;/b&gt; slice" in html
    assert "password=*** day=&lt;d&gt;" in html
    assert "x1y2" not in html
    failed = replace(DONE, status=Status.FAILED, error=Fault("no <table>"))
    assert "no &lt;table&gt;" in result(failed)._repr_html_()
    assert "<td>s&amp;1</td><td>waits</td>" in ProcessResult(waiting=("s&1",))._repr_html_()


def test_a_notebook_shows_the_warnings_of_targets_and_their_slices() -> None:
    """Those of slices were in the metrics alone: nobody saw that a column is new."""
    slices = {"slices": [{"slice": "2024-05-01.json", "warnings": ["column 'x' is new"]}]}
    warned = replace(DONE, kind="entity", metrics=slices, warnings=("it waits",))
    assert warned.all_warnings == ("it waits", "2024-05-01.json: column 'x' is new")
    assert "column &#x27;x&#x27; is new</p>" in result(warned)._repr_html_()


def test_a_result_of_process_raises_its_first_error_or_returns_itself_and_shows_its_warnings() -> None:
    done = ProcessResult(warnings=("the time is early",), notes=("2 slices were folded",))
    assert done.check() is done
    assert done.is_success
    assert "<p>the time is early</p><p>2 slices were folded</p>" in done._repr_html_()
    failed = ProcessResult(failed=("s1",), errors=(SliceError("s1 has no column id"),))
    assert not failed.is_success
    with pytest.raises(SliceError, match="s1 has no column id"):
        failed.check()
    with pytest.raises(RunFailed, match="interrupted"):
        ProcessResult(is_stopped=True).check()


def test_a_long_table_is_cut() -> None:
    html = html_table("t", ["n"], [[n] for n in range(1000)])
    assert html.count("<tr>") <= 202
    assert "800 more" in html
