"""What Python code may import from Lakewright, as the package's docstring lists it."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

import lakewright
from lakewright import errors

ROOT = Path(__file__).parents[2]
LISTED = re.compile(r"^- `(lakewright[\w.]*)`: (.+(?:\n  .+)*)$", re.MULTILINE)
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
IMPORT = re.compile(
    r"^(?:from (?P<module>lakewright[\w.]*) import (?P<names>.+)|import (?P<alone>lakewright.*))$"
)

PUBLIC = {
    "lakewright": {
        "Entity",
        "Job",
        "LandedSlice",
        "Manifest",
        "Mapping",
        "Plan",
        "ProcessResult",
        "Processing",
        "Project",
        "ProjectStatus",
        "Range",
        "Relation",
        "RunEvent",
        "RunResult",
        "Runs",
    },
    "lakewright.errors": set(errors.__all__),
    "lakewright.testing": {"MemoryStore"},
}


PACKAGES = {
    "lakewright_airflow.groups": {"job_task_group"},
    "lakewright_airflow.operators": {"LakewrightApplyOperator", "LakewrightJobOperator"},
    "lakewright_airflow.sensors": {"LakewrightSliceSensor"},
    "lakewright_dagster.definitions": {"build_definitions"},
}
"""What packages/ offers: its modules need Airflow or Dagster, and can't be imported here."""


def documented() -> dict[str, set[str]]:
    """Names in backquotes, by module; "every error" stands for the classes of `lakewright.errors`."""
    found: dict[str, set[str]] = {}
    for module, text in LISTED.findall(lakewright.__doc__ or ""):
        found[module] = set(re.findall(r"`(\w+)`", text))
        if "every error" in text:
            found[module] |= {
                name for name in errors.__all__ if issubclass(getattr(errors, name), errors.LakewrightError)
            }
    return found


def pages() -> list[Path]:
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def test_the_docstring_lists_the_public_modules_and_their_names() -> None:
    assert documented() == PUBLIC


@pytest.mark.parametrize("module", PUBLIC)
def test_a_public_module_exports_what_is_documented_and_nothing_else(module: str) -> None:
    loaded = import_module(module)
    assert set(loaded.__all__) == PUBLIC[module]
    assert all(getattr(loaded, name).__doc__ for name in loaded.__all__)


def test_a_name_that_is_not_public_is_no_attribute_of_the_package() -> None:
    with pytest.raises(AttributeError, match="no attribute 'App'"):
        lakewright.App  # noqa: B018


def test_python_in_the_docs_imports_public_names_only() -> None:
    imports = [
        (page, found)
        for page in pages()
        for block in BLOCK.findall(page.read_text())
        for line in block.splitlines()
        if (found := IMPORT.match(line.strip()))
    ]
    assert imports
    for page, found in imports:
        module, names = imported(found)
        assert names <= (PUBLIC | PACKAGES).get(module, set()), f"{page}: {found.group()}"
        assert module in PUBLIC | PACKAGES, f"{page}: {found.group()}"


def test_the_packages_for_orchestrators_import_public_names_only() -> None:
    found = [
        imported(match)
        for path in (ROOT / "packages").glob("*/src/**/*.py")
        for line in path.read_text("utf-8").splitlines()
        if (match := IMPORT.match(line.strip()))
    ]
    of_package = [(module, names) for module, names in found if module.partition(".")[0] == "lakewright"]
    assert of_package or not (ROOT / "packages").exists()  # a source distribution has none
    assert [each for each in of_package if not each[1] <= PUBLIC.get(each[0], set())] == []


def imported(found: re.Match[str]) -> tuple[str, set[str]]:
    """Return the module and the names of an import."""
    names = {name.strip().partition(" ")[0] for name in (found["names"] or "").split(",") if name.strip()}
    return found["module"] or found["alone"], names
