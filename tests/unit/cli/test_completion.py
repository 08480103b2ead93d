"""C5: shells complete commands, and the jobs, entities, phases and parameters of the project."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.shell_completion import ShellComplete

from lakewright.cli.entry import root

MODEL = """
jobs:
  daily: {parameters: [{name: day, type: date}, {name: shop}], targets: [people]}
  dry: {targets: [people]}
targets: {people: {kind: entity, entity: people}}
relations: {raw: {kind: file, location: x}}
"""
ENTITIES = '{"entities": [{"name": "people", "id": 1}, {"name": "prices", "id": 2}]}'


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "project.yml").write_text("name: p\nmodules: [model]\n")
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "a.yml").write_text(MODEL)
    (tmp_path / "model" / "b.json").write_text(ENTITIES)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def completed(line: str) -> list[str]:
    *arguments, incomplete = line.split(" ")
    shell = ShellComplete(root, {}, "lakewright", "_LAKEWRIGHT_COMPLETE")
    return [item.value for item in shell.get_completions(arguments, incomplete)]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("proc", ["process"]),
        ("job ", ["daily", "dry"]),
        ("job da", ["daily"]),
        ("job daily b", ["build"]),
        ("job daily build d", ["day=", "day:start=", "day:end="]),
        ("job daily build day=2022-01-01 s", ["shop=", "shop:start=", "shop:end="]),
        ("plan daily build -t p", ["people"]),
        ("graph daily v", ["validate", "verify"]),
        ("graph daily build s", ["shop=", "shop:start=", "shop:end="]),
        ("docs d", ["daily", "dry"]),
        ("process p", ["people", "prices"]),
        ("manifest ls --entity pr", ["prices"]),
        ("maintain people p", ["people", "prices"]),
        ("ls r", ["relations"]),
        ("show relation ", ["raw"]),
        ("show entity pe", ["people"]),
    ],
)
def test_names_of_the_project_are_completed(project: Path, line: str, expected: list[str]) -> None:
    assert project.is_dir()
    assert completed(line) == expected


def test_what_the_project_file_declares_is_completed_too(project: Path) -> None:
    short = "entities: {orders: {key: id}}\ntables: {revenue: {sql: SELECT 1 AS one}}\n"
    (project / "project.yml").write_text(f"name: p\nmodules: model\n{short}")
    assert completed("process ") == ["orders", "people", "prices"]
    assert completed("show relation ") == ["raw", "revenue"]
    assert completed("plan daily build -t ") == ["people", "revenue"]


def test_another_project_can_be_named(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/")
    assert completed("job ") == []
    assert completed(f"--project {project} job dr") == ["dry"]
    assert completed(f"job --project {project} dr") == ["dry"]


def test_a_project_that_can_not_be_read_completes_nothing(project: Path) -> None:
    (project / "model" / "a.yml").write_text("jobs: [")
    (project / "model" / "b.json").write_text('{"entities": [7]}')
    assert completed("job ") == []
    assert completed("process ") == []
