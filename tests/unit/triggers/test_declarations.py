"""Triggers as they are declared, and what loading and validation say about wrong ones."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.projects import make_project

from lakewright.errors import SpecError
from lakewright.spec.models.trigger import CatchUp, TriggerEvent
from lakewright.spec.project import Project
from lakewright.triggers.commands import argument_faults, command

PROJECT = """
jobs:
  daily:
    parameters: [{name: day, type: date}, {name: region, default: eu}]
    targets: nothing
  gold: {targets: nothing}
targets:
  nothing: {kind: empty}
connections:
  files: {}
entities:
  orders: {id: 1, connection: files, processtype: merge, columns: [{name: id, fieldroles: [businesskey]}]}
  customers: {id: 2, connection: files, processtype: merge, columns: [{name: id, fieldroles: [businesskey]}]}
"""
NOW = datetime(2026, 6, 30, 22, 30, tzinfo=UTC)


def load(folder: Path, triggers: str) -> Project:
    return make_project(folder, f"{PROJECT}\ntriggers:\n{triggers}")


def test_a_trigger_runs_a_job_with_the_date_of_its_zone(tmp_path: Path) -> None:
    project = load(
        tmp_path,
        """
  nightly:
    {job: daily, phase: verify, cron: "15 3 * * *", timezone: Europe/Amsterdam, catch_up: all,
     parameters: {day: "${LocalDate.today()}", region: us}}
""",
    )
    nightly = project.trigger("nightly")
    assert nightly.catch_up is CatchUp.ALL
    # It is past midnight in Amsterdam already.
    assert command(project, nightly, NOW) == (
        *("job", "daily", "verify", "day=2026-07-01", "region=us", "--despite-faults"),
    )
    again = command(project, nightly, NOW, is_retry=True)
    assert again[-2:] == ("--retry", "--despite-faults"), "it adds no rows of APPEND twice"
    assert list(argument_faults(project, NOW)) == []


def test_a_trigger_processes_entities_on_arrival(tmp_path: Path) -> None:
    project = load(tmp_path, "  arrivals: {entities: [orders, customers], on: arrival, settle: 500ms}")
    arrivals = project.trigger("arrivals")
    assert (arrivals.on, arrivals.sources) == (TriggerEvent.ARRIVAL, ("orders", "customers"))
    settle = ("--despite-faults", "--conf", "lakewright.bronze.settle=0.5s")
    assert command(project, arrivals, NOW, "orders") == ("process", "orders", *settle)


@pytest.mark.parametrize(
    ("declared", "why"),
    [
        ('{job: dayly, phase: build, cron: "@daily"}', "there is no job 'dayly'"),
        ("{entities: [order], on: arrival}", "there is no entity 'order'"),
        ("{job: gold, phase: build, on: processed, of: [order]}", "there is no entity 'order'"),
        ('{job: gold, phase: biuld, cron: "@daily"}', "phase"),
        ('{job: gold, phase: destroy, cron: "@daily"}', "or 'VERIFY', not 'DESTROY'"),
        ('{job: gold, cron: "@daily"}', "'phase' is missing"),
        ('{job: gold, phase: build, cron: "99 3 * * *"}', "bad minute"),
        ('{job: gold, phase: build, cron: "@daily", timezone: Mars/Base}', "unknown time zone 'Mars/Base'"),
        ('{job: gold, phase: build, cron: "@daily", catch_up: some}', "catch_up"),
        ("{job: gold, phase: build}", "either cron or on"),
        ('{cron: "@daily"}', "either a job or entities"),
        ("{job: gold, phase: build, on: processed}", "'of' is missing"),
        ("{entities: orders, on: processed}", "on each slice of 'orders' that is processed"),
        ("{entities: orders, on: arrival, settle: soon}", "not a length of time"),
        ('{job: gold, phase: build, cron: "@daily", tz: UTC}', "unknown key 'tz'"),
    ],
)
def test_a_wrong_trigger_is_refused_with_its_place(tmp_path: Path, declared: str, why: str) -> None:
    with pytest.raises(SpecError, match=why) as caught:
        load(tmp_path, f"  wrong: {declared}")
    assert {fault.location.file for fault in caught.value.faults if fault.location} == {"module.yml"}


@pytest.mark.parametrize(
    ("parameters", "why"),
    [
        ("{}", "parameter day"),
        ("{day: tomorrow}", "parameter day"),
        ("{day: 2026-01-01, city: x}", "unknown parameter 'city'"),
        ('{day: "${LocalDate.todya()}"}', "todya"),
    ],
)
def test_wrong_parameters_of_a_trigger_are_found_by_validation(
    tmp_path: Path, parameters: str, why: str
) -> None:
    project = load(
        tmp_path, f'  wrong: {{job: daily, phase: build, cron: "@daily", parameters: {parameters}}}'
    )
    (fault,) = argument_faults(project, NOW)
    assert why in fault.message
    assert "trigger 'wrong'" in fault.message
    assert fault.location is not None
