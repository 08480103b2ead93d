"""What definitions tell of themselves to readers, and the file `documentation.yml`.

Source: Flowman's `documentation` blocks, `documentation.yml` and `documentation` target.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, field_validator

from lakewright.spec.expressions.expression import has_expression
from lakewright.spec.models.base import KindOf, Listed, Model, Named, Reference, Texts

__all__ = [
    "COLLECTORS",
    "Collector",
    "ColumnDocumentation",
    "Documentation",
    "DocumentationFile",
    "Generator",
    "Template",
]

COLLECTORS = ("relations", "mappings", "targets", "entities", "lineage", "checks")
"""What can be collected; all of it unless some are named."""

DEFAULT_LOCATION = "generated-documentation"


class Template(StrEnum):
    """What the documentation is written as."""

    HTML = "html"
    HTML_CSS = "html+css"
    MARKDOWN = "markdown"
    JSON = "json"


Checks = Listed[Annotated[Named, KindOf("check")]]


class ColumnDocumentation(Model):
    """What is told of one column."""

    name: str = Field(min_length=1, description="Name of the column, in any case.")
    description: str | None = Field(default=None, description="What it holds.")
    checks: Checks = Field(default=(), description="What must hold of its values.")


class Documentation(Model):
    """What is told of a relation, mapping or target."""

    description: str | None = Field(default=None, description="What it is, in place of its own description.")
    columns: Listed[ColumnDocumentation] = Field(default=(), description="What is told of its columns.")
    checks: Checks = Field(default=(), description="What must hold of its rows.")

    def references(self) -> Iterable[Reference]:
        """Return the relations and mappings to which its checks refer."""
        for index, check in enumerate(self.checks):
            yield from _placed(check, "documentation", "checks", index)
        for number, column in enumerate(self.columns):
            for index, check in enumerate(column.checks):
                yield from _placed(check, "documentation", "columns", number, "checks", index)


def _placed(check: Named, *path: str | int) -> Iterable[Reference]:
    for reference in check.references():
        yield Reference(reference.category, reference.name, (*path, *reference.path))


class Collector(Model):
    """One thing that is collected."""

    kind: Literal["relations", "mappings", "targets", "entities", "lineage", "checks", "tests"] = Field(
        description="relations, mappings, targets, entities, lineage (of columns), or checks (run them)."
    )


def _template(declared: Any) -> Any:
    return "markdown" if declared in ("text", "md") else declared


def _patterns(meaning: str) -> Any:
    return Field(default=(), description=f"Regular expressions of whole names {meaning}.")


class Generator(Model):
    """One documentation that is written."""

    kind: Literal["file"] = Field(default="file", description="file.")
    location: str = Field(
        default=DEFAULT_LOCATION, description="Folder; a relative one is below the project's folder."
    )
    template: Annotated[Template, BeforeValidator(_template)] = Field(
        default=Template.HTML, description="html, html+css, markdown or json."
    )
    include_relations: Texts = _patterns("of relations that are shown; all unless given")
    exclude_relations: Texts = _patterns("of relations that aren't")
    include_mappings: Texts = _patterns("of mappings that are shown; all unless given")
    exclude_mappings: Texts = _patterns("of mappings that aren't")
    include_targets: Texts = _patterns("of targets that are shown; all unless given")
    exclude_targets: Texts = _patterns("of targets that aren't")

    @field_validator(
        *(
            f"{verb}_{what}"
            for verb in ("include", "exclude")
            for what in ("relations", "mappings", "targets")
        )
    )
    @classmethod
    def _compile(cls, texts: tuple[str, ...]) -> tuple[str, ...]:
        for text in texts:
            try:
                re.compile(text)
            except re.error as error:
                if not has_expression(text):
                    raise ValueError(f"{text!r} is not a regular expression: {error}") from None
        return texts

    def shows(self, category: str, name: str, project: str) -> bool:
        """Return whether something is shown; names are matched with and without the project's before them."""
        included: tuple[str, ...] = getattr(self, f"include_{category}s", ())
        excluded: tuple[str, ...] = getattr(self, f"exclude_{category}s", ())
        names = (name, f"{project}/{name}")

        def is_among(patterns: tuple[str, ...]) -> bool:
            return any(re.fullmatch(pattern, each) for pattern in patterns for each in names)

        return (not included or is_among(included)) and not is_among(excluded)


class DocumentationFile(Model):
    """The file `documentation.yml` beside `project.yml`."""

    collectors: Listed[Collector] = Field(default=(), description="What is collected; all unless given.")
    generators: Listed[Generator] = Field(
        default=(), description="What is written; a page in generated-documentation unless given."
    )

    @property
    def collected(self) -> frozenset[str]:
        """What is collected; `tests` is another name of `checks`."""
        kinds = frozenset("checks" if each.kind == "tests" else each.kind for each in self.collectors)
        return kinds or frozenset(COLLECTORS)
