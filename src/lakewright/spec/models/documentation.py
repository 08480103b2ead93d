"""Documentation of definitions, and the file `documentation.yml`.

Source: Flowman's `documentation` blocks, `documentation.yml` and `documentation` target.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import Field

from lakewright.spec.models.base import KindOf, Listed, Model, Named, Patterns, RefersTo, from_text

COLLECTORS = ("relations", "mappings", "targets", "entities", "lineage", "checks")
"""The parts that documentation can describe. By default all of them are collected."""

DEFAULT_LOCATION = "generated-documentation"


class DocumentationFormat(StrEnum):
    """Output format of the documentation."""

    HTML = "html"
    HTML_CSS = "html+css"
    MARKDOWN = "markdown"
    JSON = "json"


Checks = Annotated[Listed[Annotated[Named, KindOf("check", is_short=True)]], RefersTo.INSIDE]


class ColumnDocumentation(Model):
    """Documentation of one column."""

    name: str = Field(min_length=1, description="Name of the column.")
    description: str | None = Field(default=None, description="What the column contains.")
    checks: Checks = Field(default=(), description="Checks of its values.")


class Documentation(Model):
    """Documentation of a relation, mapping or target."""

    description: str | None = Field(
        default=None, description="Description, which replaces the definition's own."
    )
    columns: Annotated[Listed[ColumnDocumentation], RefersTo.INSIDE] = Field(
        default=(), description="Documentation of its columns."
    )
    checks: Checks = Field(default=(), description="Checks of its rows.")


class Collector(Model):
    """One part of the documentation that is collected."""

    kind: Literal["relations", "mappings", "targets", "entities", "lineage", "checks", "tests"] = Field(
        description="What is collected; `checks` runs them."
    )


def _patterns(meaning: str) -> Any:
    return Field(default=(), description=f"Regular expressions of {meaning}.")


class Generator(Model):
    """One output of the documentation."""

    kind: Literal["file"] = Field(default="file", description="file.")
    location: str = Field(default=DEFAULT_LOCATION, description="Output folder.")
    template: Annotated[
        DocumentationFormat, from_text(lambda text: "markdown" if text in ("text", "md") else text)
    ] = Field(default=DocumentationFormat.HTML, description="Form of the output.")
    include_relations: Patterns = _patterns("names; default: all")
    exclude_relations: Patterns = _patterns("names to leave out")
    include_mappings: Patterns = _patterns("names; default: all")
    exclude_mappings: Patterns = _patterns("names to leave out")
    include_targets: Patterns = _patterns("names; default: all")
    exclude_targets: Patterns = _patterns("names to leave out")

    def shows(self, category: str, name: str, project: str) -> bool:
        """Return whether a definition is included. Patterns match its name with and without `project/`."""
        included: tuple[str, ...] = getattr(self, f"include_{category}s", ())
        excluded: tuple[str, ...] = getattr(self, f"exclude_{category}s", ())
        names = (name, f"{project}/{name}")

        def is_among(patterns: tuple[str, ...]) -> bool:
            return any(re.fullmatch(pattern, each) for pattern in patterns for each in names)

        return (not included or is_among(included)) and not is_among(excluded)


class DocumentationFile(Model):
    """The file `documentation.yml`, which is next to `project.yml`."""

    collectors: Listed[Collector] = Field(default=(), description="What is collected; default all.")
    generators: Listed[Generator] = Field(
        default=(), description="What is written; default an HTML page in generated-documentation."
    )

    @property
    def collected(self) -> frozenset[str]:
        """The parts to collect. `tests` is another name for `checks`."""
        kinds = frozenset("checks" if each.kind == "tests" else each.kind for each in self.collectors)
        return kinds or frozenset(COLLECTORS)
