"""Options that every command takes, before it or after it."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.cli.surroundings import FakeApp, call_with, plan_of, step

from lakewright.cli.options import Settings, is_json_wanted

ALL = (
    *("--project", "lake", "-P", "dev", "--profile", "big", "-D", "a=1", "-D", "b=x=y"),
    *("--conf", "spark.x=1", "-o", "json", "--log-format", "json", "-vv"),
)
PLAN = ("plan", "daily", "build")
EXPECTED = Settings(
    project=Path("lake"),
    profiles=("dev", "big"),
    definitions={"a": "1", "b": "x=y"},
    conf={"spark.x": "1"},
    output="json",
    log_format="json",
    verbosity=2,
)


@pytest.mark.parametrize("arguments", [(*ALL, *PLAN), (*PLAN, *ALL), ("plan", *ALL, "daily", "build")])
def test_they_mean_the_same_in_every_place(arguments: tuple[str, ...]) -> None:
    assert call_with(FakeApp(planned=plan_of(step())), *arguments).app.settings == EXPECTED


def test_given_in_both_places_lists_grow_and_the_later_value_wins() -> None:
    before = ("--project", "a", "-D", "x=1", "-D", "y=1", "-P", "one")
    after = ("--project", "b", "-D", "y=2", "-P", "two")
    settings = call_with(FakeApp(planned=plan_of(step())), *before, *PLAN, *after).app.settings
    assert (settings.project, settings.profiles) == (Path("b"), ("one", "two"))
    assert settings.definitions == {"x": "1", "y": "2"}


@pytest.mark.parametrize(
    ("arguments", "is_json"),
    [
        ([], False),
        (["-o", "json"], True),
        (["-ojson", "plan"], True),
        (["plan", "--output=json"], True),
        (["--output", "json", "-o", "text"], False),
        (["-o"], False),
        (["plan", "json"], False),
    ],
)
def test_json_is_recognised_before_anything_is_parsed(arguments: list[str], is_json: bool) -> None:
    assert is_json_wanted(arguments) is is_json


def test_help_of_a_group_and_its_commands_has_examples_and_global_options(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for arguments in (["plan", "--help"], ["manifest", "ls", "--help"], ["--help"]):
        assert call_with(FakeApp(), *arguments).code == 0
        shown = capsys.readouterr().out
        assert "Examples:" in shown
        assert "--project DIR" in shown
