"""Slices that a target leaves to others are told with the command of a run that takes them."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from tests.projects import make_project

from lakewright.plan.dirtiness import left_slices
from lakewright.plan.other_runs import OtherRun, commands_of
from lakewright.slices.other_runs import find_other_runs
from lakewright.spec.arguments import split_values

PROJECT = """
connections:
  shop: {{settings: {{bronze_path: "${{entity}}", silver_path: "${{entity}}"}}}}
entities:
  orders:
    id: 1
    connection: shop
    processtype: full
targets:
  own: {{kind: entity, entity: orders, {limit}}}
  other: {{kind: blackhole, mapping: x}}
mappings:
  x: {{kind: values, records: [{{a: 1}}], columns: {{a: long}}}}
jobs:
  daily: {{parameters: [{parameters}], targets: [other, own]}}
"""
DAY = "{name: day, type: date}"


@pytest.mark.parametrize(
    ("limit", "parameters", "slices", "commands"),
    [
        ("slices: '${day}*'", DAY, ("2024-05-01.csv", "2024-05-03.csv"), "day=2024-05-01,2024-05-03"),
        ("until: '${day}'", DAY, ("2024-05-01.csv",), "day=2024-05-01"),
        ("slices: \"${day.format('yyyyMMdd')}.csv\"", DAY, ("20240501.csv",), "day=2024-05-01"),
        ("slices: 'part-$n'", "{name: n, type: integer}", ("part-7",), "n=7"),
        ("slices: '${region}-*'", "{name: region}", ("north-1", "south east-2"), "'region=north,south east'"),
        ("slices: '${region}-*'", "{name: region}, {name: mode}", ("north-1",), "region=north mode=<mode>"),
        ("slices: '${day}*'", f"{DAY}, {{name: mode, default: x}}", ("2024-05-01",), "day=2024-05-01"),
        (
            "slices: '${region}-${day}*'",
            f"{DAY}, {{name: region}}",
            ("north-2024-05-01",),
            "day=2024-05-01 region=north",
        ),
        ("slices: 'a*'", "", ("a1", "a2"), ""),
        ("description: all", "", ("a1",), ""),
        ("slices: '${day}*'", DAY, ("no date",), None),
        ("slices: '${day}*'", DAY, ("2024-05-99.csv",), None),
        ("slices: '${unknown}*'", DAY, ("2024-05-01.csv",), None),
    ],
)
def test_a_run_is_found_by_trying_what_the_name_of_the_slice_holds(
    tmp_path: Path, limit: str, parameters: str, slices: tuple[str, ...], commands: str | None
) -> None:
    project = make_project(tmp_path, PROJECT.format(limit=limit, parameters=parameters))
    found = commands_of(find_other_runs(project, "orders", slices))
    expected = () if commands is None else (f"lakewright job daily build {commands}".rstrip(),)
    assert found == expected


def test_several_parameters_are_left_to_more_commands() -> None:
    days = [OtherRun("x", "daily", (("day", day), ("region", "north"))) for day in ("1", "2")]
    assert commands_of([*days, OtherRun("y", "weekly", (("week", "3"),))]) == (
        "lakewright job daily build day=1 region=north",
        "lakewright job daily build day=2 region=north",
        "lakewright job weekly build week=3",
    )


def test_a_value_with_commas_or_quotes_is_typed_as_the_command_line_reads_it_a9() -> None:
    names = ("a,b", 'say "x"', "c:\\d\\", "", "plain", '"')
    (command,) = commands_of(OtherRun("x", "daily", (("name", name),)) for name in names)
    argument = shlex.split(command)[-1]
    assert split_values(argument.removeprefix("name=")) == names
    run = OtherRun("x", "daily", (("name", "a,b"), ("day", "1")))
    assert commands_of([run]) == ("lakewright job daily build 'name=\"a,b\"' day=1",)


def test_of_many_slices_the_first_ten_are_typed(tmp_path: Path) -> None:
    project = make_project(tmp_path, PROJECT.format(limit="slices: 's$n'", parameters="{name: n}"))
    names = [f"s{number}" for number in range(12)]
    told = left_slices(names, find_other_runs(project, "orders", names))
    assert told.startswith("leaves 12 slices to other runs: s0, s1, s2, …; ")
    assert told.endswith("`lakewright job daily build n=0,1,2,3,4,5,6,7,8,9` takes the first 10")
