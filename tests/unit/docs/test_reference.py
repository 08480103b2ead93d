"""The pages of the reference follow from the code and the examples."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from scripts.reference.keys import UNUSED, keys_of
from scripts.reference.pages import BASES, EXAMPLES, MODELS, PAGES, kinds_of, page
from tests.projects import KINDS

from lakewright.spec.config import SETTINGS
from lakewright.spec.load import load_project
from lakewright.spec.model import Model
from lakewright.stores.memory import MemoryStore
from lakewright.stores.registry import KINDS as STORES
from lakewright.stores.registry import OF_THE_LEDGER
from lakewright.stores.sql.postgres import PostgresStore
from lakewright.stores.sql.sqlite import SqliteStore

EXAMPLE_FILES = sorted(EXAMPLES.rglob("*.yml"))
KINDS_OF_ALL = [(category, name, model) for category in BASES for name, _, model in kinds_of(category)]

WITHOUT_EFFECT = {"execution.executor.parallelism", "execution.target.forceDirty"}
"""Configuration of Flowman's that is read, but that nothing uses so far."""


@pytest.mark.parametrize("name", PAGES)
def test_pages_are_up_to_date(name: str) -> None:
    assert PAGES[name].read_text() == page(name), "run: make docs"


@pytest.mark.parametrize("file", EXAMPLE_FILES, ids=lambda file: f"{file.parent.name}-{file.stem}")
def test_an_example_loads_without_faults_and_warnings(file: Path, tmp_path: Path) -> None:
    (tmp_path / "project.yml").write_text("name: example\nmodules: example.yml\nlake: {root_folder: lake}\n")
    (tmp_path / "example.yml").write_text(file.read_text())
    project = load_project(tmp_path, kinds=KINDS, environ={})
    assert project.warnings == ()


def test_each_kind_has_one_example_and_each_example_a_kind() -> None:
    kinds = {f"{category}/{name}.yml" for category, name, _ in KINDS_OF_ALL}
    assert {str(file.relative_to(EXAMPLES)) for file in EXAMPLE_FILES} == kinds


@pytest.mark.parametrize(("category", "name", "_"), KINDS_OF_ALL)
def test_an_example_shows_its_kind(category: str, name: str, _: object) -> None:
    text = (EXAMPLES / category / f"{name}.yml").read_text()
    assert f"kind: {name}\n" in text or f"{{kind: {name}," in text or name == "inline"


def documented() -> Iterator[type[Model]]:
    yield from MODELS.values()
    yield from (model for _, _, model in KINDS_OF_ALL)


def test_every_key_says_what_it_is_for() -> None:
    bare = [
        f"{model.__name__}.{key.name}" for model in documented() for key in keys_of(model) if not key.meaning
    ]
    assert bare == []


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
    assert {key for key in SETTINGS if f"`lakewright.{key}`" not in text} == WITHOUT_EFFECT


def test_every_setting_of_a_manifest_is_described() -> None:
    section = PAGES["project.md"].read_text().partition("\n## manifest\n")[2].partition("\n## ")[0]
    stores = (MemoryStore, PostgresStore, SqliteStore)
    assert len(stores) == len(STORES)
    settings = OF_THE_LEDGER.union(*(store.options for store in stores))
    assert {f"| `{setting}` |" for setting in settings if f"| `{setting}` |" not in section} == set()
    assert all(f"`{kind}`" in section for kind in STORES)
