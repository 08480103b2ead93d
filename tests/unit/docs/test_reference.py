"""The reference pages are generated from the code and the examples."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from scripts.reference.codes import ERRORS, PLAN, all_errors
from scripts.reference.examples import EXAMPLES
from scripts.reference.keys import UNUSED, keys_of
from scripts.reference.kinds import BASES, kinds_of
from scripts.reference.pages import MODELS, PAGES, page

from lakewright.cli.entry import root
from lakewright.due.plan import Code
from lakewright.plan.phase import Phase
from lakewright.run.kinds import registry
from lakewright.spec.loading.loader import load_project
from lakewright.spec.loading.settings import SETTINGS, LoadOptions
from lakewright.spec.models.base import Model
from lakewright.spec.project import Project
from lakewright.stores.registry import COMMON, KINDS, kind_class
from lakewright.targets.target import Target

EXAMPLE_FILES = sorted(EXAMPLES.rglob("*.yml"))
KINDS_OF_ALL = [(category, name, model) for category in BASES for name, _, model in kinds_of(category)]


@pytest.mark.parametrize("name", PAGES)
def test_pages_are_up_to_date(name: str) -> None:
    assert PAGES[name].read_text() == page(name), "run: make docs"


def load(example: Path, folder: Path) -> Project:
    """Return a project with an example as its only module."""
    (folder / "project.yml").write_text("name: example\nmodules: example.yml\nlake: {root_folder: lake}\n")
    (folder / "example.yml").write_text(example.read_text())
    return load_project(folder, LoadOptions(kinds=registry(), environ={}))


@pytest.mark.parametrize("file", EXAMPLE_FILES, ids=lambda file: f"{file.parent.name}-{file.stem}")
def test_an_example_loads_without_faults_and_warnings(file: Path, tmp_path: Path) -> None:
    assert load(file, tmp_path).warnings == ()


def test_each_kind_has_one_example_and_each_example_a_kind() -> None:
    kinds = {f"{category}/{name}.yml" for category, name, _ in KINDS_OF_ALL}
    assert {str(file.relative_to(EXAMPLES)) for file in EXAMPLE_FILES} == kinds


@pytest.mark.parametrize(("category", "name", "_"), KINDS_OF_ALL)
def test_an_example_shows_its_kind(category: str, name: str, _: object) -> None:
    text = (EXAMPLES / category / f"{name}.yml").read_text()
    assert f"kind: {name}\n" in text or f"{{kind: {name}," in text or name == "inline"


def phases_in(page: str) -> dict[str, set[Phase]]:
    """Return the phases of each kind of target, by the page's table."""
    header, _, *rows = page[page.index("| kind | VALIDATE") :].partition("\n\n")[0].splitlines()
    phases = [Phase(cell.strip()) for cell in header.split("|")[2:-1]]
    found: dict[str, set[Phase]] = {}
    for row in rows:
        kinds, *cells = (cell.strip() for cell in row.split("|")[1:-1])
        active = {phase for phase, cell in zip(phases, cells, strict=True) if cell}
        found |= {kind.strip(" `"): active for kind in kinds.split(",")}
    return found


def test_the_table_of_phases_is_right(tmp_path: Path) -> None:
    actual: dict[str, set[Phase]] = {}
    for file in (EXAMPLES / "target").glob("*.yml"):
        project = load(file, tmp_path)
        for definition in project.targets.values():
            target = definition.check()[0]
            assert isinstance(target, Target)
            actual[target.kind] = set(target.phases())
    assert phases_in(PAGES["targets.md"].read_text()) == actual


def test_every_category_is_documented() -> None:
    assert set(registry().categories) <= set(BASES)


def documented() -> Iterator[type[Model]]:
    yield from MODELS.values()
    yield from (model for _, _, model in KINDS_OF_ALL)


def test_every_key_has_a_description() -> None:
    bare = [
        f"{model.__name__}.{key.name}" for model in documented() for key in keys_of(model) if not key.meaning
    ]
    assert bare == []


def test_lengths_of_time_are_written_as_a_project_writes_them() -> None:
    keys = {key.name: (key.type, key.default) for key in keys_of(MODELS["Trigger"])}
    assert keys["settle"] == ("length of time", "`2s`")
    assert keys["every"] == ("length of time", "`10s`")


def test_keys_without_effect_are_keys() -> None:
    known = {model.__name__: model for model in documented()}
    stale = [
        f"{name}.{key}"
        for name, keys in UNUSED.items()
        for key in keys
        if key not in known[name].model_fields
    ]
    assert stale == []


def test_every_configuration_is_described() -> None:
    text = PAGES["project.md"].read_text()
    assert {key for key in SETTINGS if f"`lakewright.{key}`" not in text} == set()


def test_every_setting_of_a_manifest_is_described() -> None:
    section = PAGES["project.md"].read_text().partition("\n## manifest\n")[2].partition("\n## ")[0]
    settings = COMMON.union(*(kind_class(kind).options for kind in KINDS))
    assert {setting for setting in settings if f"- `{setting}`" not in section} == set()
    assert all(f"`{kind}`" in section for kind in KINDS)


def test_each_code_has_its_entry() -> None:
    assert PLAN.keys() == set(Code)
    assert ERRORS.keys() == {each.code for each in all_errors()}


COMMANDS = re.compile(r"`lakewright ([^`]+)`")
TYPED = sorted({command for text in (*PLAN.values(), *ERRORS.values()) for command in COMMANDS.findall(text)})


@pytest.mark.parametrize("typed", TYPED)
def test_a_command_of_an_entry_is_one_of_the_command_line(typed: str) -> None:
    command: click.Command = root
    arguments = shlex.split(typed)
    with click.Context(command, info_name="lakewright") as context:
        while isinstance(command, click.Group):
            _, found, arguments = command.resolve_command(context, arguments)
            assert found is not None
            command = found
        # Arguments are parsed, and nothing is run.
        command.make_context(typed, arguments, parent=context)
