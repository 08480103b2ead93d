"""The run of a job that takes a slice is found by the name of the slice."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.projects import make_project

from lakewright.slices.other_runs import run_taking

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
    ("limit", "parameters", "name", "found"),
    [
        ("slices: '${day}*'", DAY, "2024-05-03.csv", {"day": "2024-05-03"}),
        ("until: '${day}'", DAY, "2024-05-01.csv", {"day": "2024-05-01"}),
        ("slices: \"${day.format('yyyyMMdd')}.csv\"", DAY, "20240501.csv", {"day": "2024-05-01"}),
        ("slices: 'part-$n'", "{name: n, type: integer}", "part-7", {"n": "7"}),
        ("slices: '${region}-*'", "{name: region}", "south east-2", {"region": "south east"}),
        (
            "slices: '${region}-*'",
            "{name: region}, {name: mode}",
            "north-1",
            {"region": "north", "mode": "?"},
        ),
        ("slices: '${day}*'", f"{DAY}, {{name: mode, default: x}}", "2024-05-01", {"day": "2024-05-01"}),
        (
            "slices: '${region}-${day}*'",
            f"{DAY}, {{name: region}}",
            "north-2024-05-01",
            {"day": "2024-05-01", "region": "north"},
        ),
        ("slices: 'a*'", "", "a1", {}),
        ("description: all", "", "a1", {}),
        ("slices: '${day}*'", DAY, "no date", None),
        ("slices: '${day}*'", DAY, "2024-05-99.csv", None),
        ("slices: '${unknown}*'", DAY, "2024-05-01.csv", None),
    ],
)
def test_a_run_is_found_by_trying_what_the_name_of_the_slice_holds(
    tmp_path: Path, limit: str, parameters: str, name: str, found: dict[str, str] | None
) -> None:
    project = make_project(tmp_path, PROJECT.format(limit=limit, parameters=parameters))
    run = run_taking(project, "orders", name)
    given = None if run is None else {**dict(run.parameters), **dict.fromkeys(run.unknown, "?")}
    assert given == found
