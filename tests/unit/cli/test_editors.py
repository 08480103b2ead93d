"""`schema` and `init` write what they say, and say how it is used."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.documents import checked
from tests.unit.cli.surroundings import FakeApp, call_with

from lakewright.cli.commands.init import TEMPLATES
from lakewright.errors.phrase import Command


def test_schemas_are_written_beside_the_project_and_fitted_to_its_modules(tmp_path: Path) -> None:
    (tmp_path / "project.yml").write_text("name: x\nmodules: [model, jobs/daily.yml, entities]\n")

    answered = call_with(FakeApp(), "schema", "--project", str(tmp_path), "-o", "json")

    document = checked(json.loads(answered.out))
    assert (answered.code, document["folder"]) == (0, str(tmp_path / "schemas"))
    for name in document["files"]:
        schema = json.loads((tmp_path / "schemas" / name).read_text())
        assert schema["$schema"].startswith("https://json-schema.org/")
    assert document["vscode"]["yaml.schemas"]["./schemas/module.schema.json"] == [
        "model/*.yml",
        "model/*.yaml",
        "jobs/daily.yml",
        "entities/*.yml",
        "entities/*.yaml",
    ]
    assert document["vscode"]["json.schemas"][0]["fileMatch"] == ["model/*.json", "entities/*.json"]


def test_schemas_can_be_written_anywhere(tmp_path: Path) -> None:
    answered = call_with(FakeApp(), "schema", str(tmp_path / "here"))
    assert answered.code == 0
    assert f"# yaml-language-server: $schema={tmp_path}/here/module.schema.json" in answered.out
    assert len(list((tmp_path / "here").iterdir())) == 4


@pytest.mark.parametrize("template", TEMPLATES)
def test_a_template_is_written_as_a_valid_project(tmp_path: Path, template: str) -> None:
    from lakewright.run.kinds import registry
    from lakewright.spec.loading.loader import load_project
    from lakewright.spec.loading.settings import LoadOptions

    answered = call_with(FakeApp(), "init", str(tmp_path / "new"), "--template", template)

    assert answered.code == 0
    assert Command(*TEMPLATES[template][0], "--project", f"{tmp_path}/new") in answered.out
    project = load_project(tmp_path / "new", LoadOptions(kinds=registry(), environ={}))
    assert project.warnings == ()
    assert project.jobs
