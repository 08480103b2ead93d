"""What a call that fails prints and returns."""

from __future__ import annotations

import json

import click
import pytest
from tests.documents import checked
from tests.unit.cli.surroundings import FakeApp, call_with, failing, plan_of, step

from lakewright.errors import (
    Fault,
    ItemFailed,
    LakewrightError,
    Location,
    ManifestCorrupt,
    NotInstalled,
    SpecError,
    StoreBusy,
    StoreUnavailable,
    UsageError,
)

TWO = SpecError(
    [
        Fault("unknown key 'tpye'", location=Location("model/x.yml", 3), remedy="did you mean 'type'?"),
        Fault("there is no relation 'y'", location=Location("model/x.yml", 9)),
    ]
)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (TWO, 2),
        (UsageError("no such job"), 2),
        (ItemFailed("it failed"), 4),
        (NotInstalled("no Java"), 1),
        (StoreUnavailable("no answer"), 1),
        (StoreBusy("kept busy"), 4),
        (ManifestCorrupt("bad"), 1),
    ],
)
def test_the_exit_code_says_who_must_act(error: LakewrightError, code: int) -> None:
    """Lifecycle rules, "Status and exit codes"."""
    assert call_with(FakeApp(), "validate", opening=failing(error)).code == code


def test_every_fault_is_told_with_where_and_what_to_do() -> None:
    answered = call_with(FakeApp(), "validate", opening=failing(TWO))
    assert answered.out == ""
    assert answered.err.splitlines() == [
        "error: unknown key 'tpye'",
        "  where: model/x.yml:3",
        "  do: did you mean 'type'?",
        "error: there is no relation 'y'",
        "  where: model/x.yml:9",
        "2 errors",
    ]


def test_a_document_holds_the_errors_and_stands_alone_on_stdout() -> None:
    answered = call_with(FakeApp(), "-o", "json", "validate", opening=failing(TWO))
    assert checked(json.loads(answered.out)) == {
        "errors": [
            {
                "code": "spec",
                "message": "unknown key 'tpye'",
                "remedy": "did you mean 'type'?",
                "location": "model/x.yml:3",
            },
            {
                "code": "spec",
                "message": "there is no relation 'y'",
                "remedy": None,
                "location": "model/x.yml:9",
            },
        ]
    }


@pytest.mark.parametrize(
    "arguments",
    [
        ["nonsense"],
        ["plan", "daily"],
        ["plan", "daily", "noon"],
        ["plan", "daily", "build", "--nonsense"],
        ["plan", "daily", "build", "-D", "nosign"],
        ["plan", "daily", "build", "--conf", "=x"],
        ["ls", "nonsense"],
        ["manifest"],
    ],
)
def test_wrong_usage_is_2_in_words_or_as_a_document(arguments: list[str]) -> None:
    assert call_with(FakeApp(), *arguments).code == 2
    answered = call_with(FakeApp(), *arguments, "-o", "json")
    assert answered.code == 2
    assert answered.out == "" or checked(json.loads(answered.out))["errors"][0]["code"] == "usage"


def test_an_unknown_command_names_one_that_is_like_it() -> None:
    assert "did you mean 'plan'?" in call_with(FakeApp(), "pln").err


def test_an_option_for_json_is_told_the_one_there_is() -> None:
    assert "`-o json` gives the result as JSON" in call_with(FakeApp(), "status", "--json").err


def test_what_nobody_foresaw_is_told_without_a_traceback() -> None:
    app = FakeApp(error=ZeroDivisionError("by zero"))
    answered = call_with(app, "plan", "daily", "build")
    assert answered.code == 1
    assert "ZeroDivisionError: by zero" in answered.err
    assert "Traceback" not in answered.err
    assert "Traceback" in call_with(app, "plan", "daily", "build", "-vv").err


def test_a_traceback_leaves_what_to_do_to_the_error_below_it() -> None:
    """D2: in Python a traceback has the remedy; the command line prints it once, with -vv too."""
    app = FakeApp(error=UsageError("no such day", remedy="Give another day."))
    answered = call_with(app, "plan", "daily", "build", "-vv")
    assert "Traceback" in answered.err
    assert answered.err.count("Give another day.") == 1


@pytest.mark.parametrize("error", [KeyboardInterrupt(), click.Abort()])
def test_an_interrupted_call_is_130(error: Exception) -> None:
    assert call_with(FakeApp(error=error), "plan", "daily", "build").code == 130


def test_the_project_is_let_go_whatever_happens() -> None:
    for app in (FakeApp(planned=plan_of(step())), FakeApp(error=ValueError("x"))):
        call_with(app, "plan", "daily", "build")
        assert app.is_closed


def test_secrets_of_the_project_are_in_no_error() -> None:
    answered = call_with(FakeApp(error=ValueError("with hunter2-secret")), "plan", "daily", "build", "-vv")
    assert "hunter2-secret" not in answered.err


def test_warnings_of_the_project_go_to_stderr() -> None:
    app = FakeApp(
        planned=plan_of(step()), warnings=(Fault("flowman.x isn't read", Location("project.yml", 4)),)
    )
    answered = call_with(app, "plan", "daily", "build", "-o", "json")
    assert "warning: project.yml:4: flowman.x isn't read" in answered.err
    assert checked(json.loads(answered.out))["job"] == "daily"
