"""Commands in messages carry the options with which the project was named, so that they can be pasted."""

from __future__ import annotations

import json
import logging
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.unit.cli.surroundings import FakeApp, call_with, ended, plan_of, result_of, step

from lakewright.cli.options import Settings, repeated_options
from lakewright.cli.page import Table, line, plain
from lakewright.errors import Fault, UsageError
from lakewright.errors.phrase import Command, Phrase, ShellLine
from lakewright.errors.surfaces import on_terminal
from lakewright.plan.status import Status
from lakewright.plan.step import Plan

OPTIONS = ("--project", "my lake", "-P", "prod", "-D", "day=2 1", "--conf", "a=b")
TYPED = "--project 'my lake' -P prod -D 'day=2 1' --conf a=b"


def failed() -> FakeApp:
    fault = Fault(
        "2 slices changed",
        remedy=Phrase("Process them again with ", Command("manifest", "requeue", "o/1", "o/2"), "."),
    )
    return FakeApp(result=result_of(ended(status=Status.FAILED, error=fault)))


def test_the_report_of_a_job_repeats_them() -> None:
    seen = call_with(failed(), "job", "daily", "build", *OPTIONS, terminal=True)
    assert f"lakewright manifest requeue o/1 o/2 {TYPED}" in " ".join(seen.out.split())
    answered = call_with(failed(), "job", "daily", "build", *OPTIONS)
    assert f"`lakewright manifest requeue o/1 o/2 {TYPED}`" in answered.err


def test_options_before_the_command_are_repeated_too() -> None:
    assert (
        "`lakewright manifest requeue o/1 o/2 -P prod`"
        in call_with(failed(), "-P", "prod", "job", "a", "build").err
    )


def test_an_error_repeats_them() -> None:
    app = FakeApp(error=UsageError("no such run", remedy=Phrase("See ", Command("history"), ".")))
    assert f"See `lakewright history {TYPED}`." in call_with(app, "plan", "daily", "build", *OPTIONS).err


def test_without_such_options_nothing_is_added() -> None:
    assert "`lakewright manifest requeue o/1 o/2`" in call_with(failed(), "job", "daily", "build", "-v").err


def test_json_keeps_the_command_as_every_caller_gets_it() -> None:
    answered = call_with(failed(), "job", "daily", "build", *OPTIONS, "-o", "json")
    (target,) = json.loads(answered.out)["instances"][0]["phases"][0]["targets"]
    assert target["error"]["remedy"] == "Process them again with `lakewright manifest requeue o/1 o/2`."


def test_a_secret_is_not_repeated_but_left_to_be_filled_in() -> None:
    answered = call_with(failed(), "job", "daily", "build", "-D", "db_password=hunter2-x", "-D", "user=ada")
    assert "`lakewright manifest requeue o/1 o/2 -D db_password=<db_password> -D user=ada`" in answered.err
    assert "hunter2-x" not in answered.out + answered.err


def test_the_options_are_parsed_as_those_that_were_given() -> None:
    settings = Settings(Path("a 'b"), ("x y",), {"k": "v;w"}, {"spark.a": "$HOME"})
    assert shlex.split(repeated_options(settings)) == [
        *("--project", "a 'b", "-P", "x y", "-D", "k=v;w", "--conf", "spark.a=$HOME")
    ]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (Phrase(Command("status")), "`lakewright status -P a`"),
        (
            Phrase(Command("status"), ", then ", Command("test")),
            "`lakewright status -P a`, then `lakewright test -P a`",
        ),
        (
            Phrase(Command("manifest", "run", "--as", "x", "--", "cp", "{item}", "a b")),
            "`lakewright manifest run --as x -P a -- cp '{item}' 'a b'`",
        ),
        (Phrase(Command("job", "--help")), "`lakewright job --help`"),
        (Phrase(Command("test", "--project", "b")), "`lakewright test --project b`"),
        (Phrase(Command("init")), "`lakewright init`"),
        (Phrase(ShellLine("mv a b")), "`mv a b`"),
        ("`lakewright status`", "`lakewright status`"),
        (Command("status"), "lakewright status"),
    ],
)
def test_they_stand_where_the_command_takes_them(text: str, found: str) -> None:
    assert on_terminal(text, " -P a") == found


def test_every_part_of_a_page_has_them() -> None:
    typed, whole = line(Phrase(Command("status"))), "`lakewright status -P a`"
    assert list(plain(line(Phrase(Command("status")), below=[typed]), " -P a")) == [whole, f"  {whole}"]
    assert list(plain(Table(("do",), ((typed,),)), " -P a")) == ["do", whole]


def test_a_warning_has_them() -> None:
    app = FakeApp(warnings=(Fault("odd", remedy=Phrase("See ", Command("validate"), ".")),))
    assert "See `lakewright validate -P prod`." in call_with(app, "status", "-P", "prod").err


@dataclass
class Logging(FakeApp):
    def plan(self, request: Any) -> Plan:
        logging.getLogger("lakewright.x").warning("Type %s.", Phrase(Command("status")))
        return super().plan(request)


@pytest.mark.parametrize(
    ("form", "found"), [("text", "`lakewright status -P a`"), ("json", "`lakewright status`")]
)
def test_a_line_of_the_log_has_them_but_not_as_json(form: str, found: str) -> None:
    app = Logging(planned=plan_of(step()))
    assert found in call_with(app, "plan", "daily", "build", "-P", "a", "--log-format", form).err
