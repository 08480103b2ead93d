"""D2: an open project runs one thing at a time, each under an id of its own."""

from __future__ import annotations

import logging
from dataclasses import replace
from inspect import Parameter, signature
from pathlib import Path

import pytest
from tests.unit.usecases.slice_times.test_requeued_times import BY_SLICE, processed

from lakewright import Project, Range
from lakewright.api.arguments import job_request
from lakewright.api.open_project import Opened, warned
from lakewright.app import App
from lakewright.due.facts import Subject, Verb
from lakewright.due.plan import Action, Code, Finding, Plan, Reason, State, Step, choices_of
from lakewright.errors import Fault, LakewrightWarning, SpecError, UsageError
from lakewright.plan.permissions import Permissions
from lakewright.plan.phase import Phase
from lakewright.run.request import JobRequest
from lakewright.usecases.items import find_item


@pytest.fixture
def shop(tmp_path: Path) -> Project:
    (tmp_path / "project.yml").write_text("name: shop\nmodules: [m]\nlake: {root_folder: lake}\n")
    (tmp_path / "m").mkdir()
    (tmp_path / "m/m.yml").write_text(
        "mappings: {one: {kind: sql, sql: SELECT 1}}\n"
        "jobs: {daily: {description: all, parameters: [{name: day, type: date}], targets: []}}\n"
    )
    return Project.load(tmp_path)


def test_a_second_run_is_refused_while_one_is_going_on(shop: Project) -> None:
    opened = Opened(App(shop.app.project, {}))
    with opened.run() as first:
        with pytest.raises(UsageError, match="running something already"), opened.run():
            pass
        assert opened.app.run_id == first
    with opened.run() as second:
        assert first != second


def test_definitions_are_listed_without_spark(shop: Project) -> None:
    job = shop.job("daily")
    assert (job.name, job.description, dict(job.parameters)) == ("daily", "all", {"day": "date"})
    assert [repr(each) for each in shop.mappings.values()] == ["<Mapping one (sql)>"]
    assert (shop.name, list(shop.relations), list(shop.entities), shop.warnings) == ("shop", [], [], ())
    with pytest.raises(SpecError, match=r"there is no mapping 'on'.*one"):
        shop.mapping("on")
    with pytest.raises(SpecError, match="there is no job"):
        shop.plan("dialy")
    with pytest.raises(UsageError, match="is not a phase"):
        shop.plan("daily", "biuld", day="2024-05-01")
    assert list(shop.history()) == []
    assert repr(shop.status()) == "<ProjectStatus nothing is running or due>"
    assert repr(shop.plan("daily", day="2024-05-01")).startswith("<Plan daily verify instances=1 ")


def test_a_notebook_shows_what_the_status_is_not_calm_for(shop: Project) -> None:
    calm = shop.status()
    asked = Step("1", Action.HOLD, Subject("orders", "<1>"), Reason(Code.LATE_SLICE, {"slice": "<1>"}))
    asked = replace(
        asked,
        state=State.NEEDS_DECISION,
        choices=choices_of(asked.subject, "", (Verb.SKIP,), asked.reason.code),
    )
    noticed = Finding(Reason(Code.UNKNOWN, {"why": "only Spark can read the table"}), Subject("stock"))
    found = replace(calm, plan=Plan((asked,), (noticed,)), faults=(Fault("no such key", remedy="Drop it."),))
    assert repr(found) == "<ProjectStatus needs_you=1 findings=1 faults=1>"
    html = found._repr_html_()
    assert "<td>Needs you</td><td>orders/&lt;1&gt;</td>" in html
    assert "lakewright decide 'orders/&lt;1&gt;' skip" in html.replace("&#x27;", "'").replace("&#39;", "'")
    assert "<td>Worth knowing</td><td>stock</td><td>only Spark can read the table</td>" in html
    assert "<td>no such key</td><td>Drop it.</td>" in html
    assert "Nothing is running or due" in calm._repr_html_()


def test_plan_and_run_take_the_same_options_with_the_same_defaults(shop: Project) -> None:
    """D2: a plan is made with the options of the run that it is for."""
    planned, run = (
        {
            name: parameter.default
            for name, parameter in signature(method).parameters.items()
            if parameter.kind is Parameter.KEYWORD_ONLY
        }
        for method in (Project.plan, Project.run)
    )
    assert planned.pop("preview") is False  # a run counts the deletes in any case
    assert planned == {name: run[name] for name in planned}
    # How many run at once, and who listens, changes nothing about what runs.
    assert run.keys() - planned.keys() == {"jobs", "on_event"}
    defaults = {name: run[name] for name in run.keys() - {"on_event", "parameters"}}
    assert job_request("daily", "build", (), **defaults) == JobRequest("daily", Phase.BUILD)
    request = job_request("daily", "build", (), targets="a", keep_going=True, allow_backdated=True)
    assert (request.targets, request.keep_going, request.permissions) == (
        ("a",),
        True,
        Permissions(allow_backdated=True),
    )
    assert shop.plan("daily", day="2024-05-01", keep_going=True, wait=True).job == "daily"


def test_runs_and_the_history_know_the_same_ends(shop: Project) -> None:
    """An end that could not be saved is remembered by the journal of the run."""
    app = shop.app
    assert app.journal_of(app.store) is app.journal
    app.close()
    assert app.journal_of(app.store).store is app.store


def test_a_skip_is_undone_from_python(tmp_path: Path) -> None:
    """Only the command line could: the remedy of `rebuild(include=…)` had no call."""
    processed(tmp_path, "historic", BY_SLICE)
    (tmp_path / "lake/bronze/orders/2024-05-01b.csv").write_text("id\n1\n")
    with Project.load(tmp_path) as project:
        orders = project.entity("orders")
        orders.skip("2024-05-01b.csv")
        with pytest.raises(UsageError, match="it is skipped"):
            orders.rebuild(include=["2024-05-01b.csv"])
        with pytest.warns(LakewrightWarning) as told:
            orders.unskip("2024-05-01b.csv", reason="it was right")
        assert "later slices are processed; project.due() shows what is due" in str(told[0].message)
        (step,) = project.status().plan.steps
        assert step.subject.part == "2024-05-01b.csv"
        with pytest.raises(UsageError):
            orders.unskip("2024-05-01b.csv")


@pytest.mark.parametrize("name", ["../sales/2024-05-01.csv", "2024-05-01.csv/", "..", ""])
def test_a_path_is_not_the_name_of_a_slice(tmp_path: Path, name: str) -> None:
    """By `../`, the slice of another entity was skipped."""
    processed(tmp_path, "historic", BY_SLICE)
    with Project.load(tmp_path) as project:
        orders = project.entity("orders")
        for act in (orders.skip, orders.unskip, orders.requeue, orders.resolve, orders.accept):
            with pytest.raises(UsageError, match="is not the name of a slice of orders"):
                act(name)
        with pytest.raises(UsageError, match="no item"):
            find_item(project.app, "orders/../orders/2024-05-01.csv")


def test_a_caller_without_logging_is_told_that_a_skipped_slice_was_processed(tmp_path: Path) -> None:
    """Log records are silent in a notebook: the rows stayed without a word."""
    processed(tmp_path, "historic", BY_SLICE)
    with (
        Project.load(tmp_path) as project,
        pytest.warns(LakewrightWarning, match="it was processed before") as told,
    ):
        project.entity("orders").skip("2024-05-01.csv")
    (warning,) = told
    assert "project.due() shows what is due" in str(warning.message)
    assert warning.filename == __file__


def test_warnings_of_python_do_not_depend_on_the_level_of_the_log(tmp_path: Path) -> None:
    root, shown = logging.getLogger(), logging.getLogger("lakewright")
    before = root.level
    root.setLevel(logging.CRITICAL)
    try:
        with pytest.warns(LakewrightWarning, match="heard"), warned():
            logging.getLogger("lakewright.run").warning("heard")
        assert not shown.isEnabledFor(logging.WARNING)
        assert shown.propagate
    finally:
        root.setLevel(before)


def test_loading_and_planning_warn_of_what_is_probably_a_mistake(tmp_path: Path) -> None:
    (tmp_path / "project.yml").write_text("name: shop\nmodules: [m.yml]\n")
    (tmp_path / "m.yml").write_text(
        "config: [flowman.hadop=1]\njobs: {daily: {parameters: [{name: day, type: date}], targets: []}}\n"
    )
    with pytest.warns(LakewrightWarning, match=r"flowman\.hadop"):
        project = Project.load(tmp_path)
    days = Range("2024-05-01", until="2024-05-01")
    for call in (project.plan, project.run):
        with pytest.warns(LakewrightWarning, match="expand to no instance"):
            call("daily", day=days)
    project.close()


def test_a_range_is_no_value_of_a_partition(tmp_path: Path) -> None:
    (tmp_path / "project.yml").write_text("name: shop\nmodules: [m.yml]\n")
    (tmp_path / "m.yml").write_text(
        "relations: {days: {kind: delta, location: days, partitions: [{name: day, type: date}]}}\n"
    )
    with (
        Project.load(tmp_path) as project,
        pytest.raises(UsageError, match="day: a Range is not taken") as told,
    ):
        project.relation("days").read(partition={"day": Range("2024-05-01", "2024-05-02")})
    assert told.value.remedy == "Give a list of values, or filter the rows: read().where(…day…)."
