"""The YAML blocks of each page in docs/ load as a project."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from tests.unit.docs.pages import DOCS, PAGES, ROOT, blocks

from lakewright.run.kinds import registry
from lakewright.spec.loading.loader import load_project
from lakewright.spec.loading.settings import LoadOptions

COOKBOOK = DOCS / "cookbook.md"
"""Its blocks are projects of their own."""

WRITTEN = [
    page
    for page in PAGES
    if DOCS / "reference" not in page.parents and page != COOKBOOK and any(blocks(page, "yaml"))
]
PROJECT = "name: page\nmodules: [model]\nlake: {root_folder: lake}\n"


def write_project(folder: Path, texts: list[str]) -> None:
    """Write the blocks of a page: the one with `name` is the project file, the others are its modules."""
    for name in ("model", "jobs"):
        (folder / name).mkdir()
    (folder / "project.yml").write_text(PROJECT)
    for number, text in enumerate(texts):
        declared = yaml.safe_load(text)
        is_project = "name" in declared
        more = "modules: [model]\n" if is_project and "modules" not in declared else ""
        (folder / ("project.yml" if is_project else f"model/{number}.yml")).write_text(text + more)


@pytest.mark.parametrize("page", WRITTEN, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_yaml_of_a_page_loads(page: Path, tmp_path: Path) -> None:
    write_project(tmp_path, list(blocks(page, "yaml")))
    project = load_project(tmp_path, LoadOptions(kinds=registry(), environ={}))
    assert project.warnings == ()
    assert all(project.entities[name].places(project.lake) for name in project.entities)


@pytest.mark.parametrize("text", [*blocks(COOKBOOK, "yaml")], ids=lambda text: text.split()[1].rstrip(":"))
def test_a_recipe_is_a_project(text: str, tmp_path: Path) -> None:
    (tmp_path / "project.yml").write_text(f"name: shop\n{text}")
    project = load_project(tmp_path, LoadOptions(kinds=registry(), environ={}))
    assert project.warnings == ()
    assert project.jobs.keys() == {"all"}
    assert len(text.splitlines()) <= 12
