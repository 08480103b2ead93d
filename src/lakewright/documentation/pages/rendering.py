"""The documentation as HTML and Markdown, made from the Jinja2 templates next to this module.

Every text of the project is escaped. In HTML, the content security policy lets a browser run the page's own
script only. The lineage is a drawing: a box for each item, a line from each item to those that read it.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import TYPE_CHECKING, Any, NamedTuple

from markupsafe import Markup

from lakewright.checks.check import CheckResult, CheckStatus, Sample
from lakewright.documentation.document import CATEGORIES, Column, Document, Item, Ref
from lakewright.documentation.pages.layout import Drawing, lay_out, shortened, svg_path

if TYPE_CHECKING:
    from jinja2 import Environment


CHAPTERS = {"target": "Targets", "entity": "Entities", "relation": "Relations", "mapping": "Mappings"}
"""Titles of the chapters by category, in their order on the page."""


def counts_of(check: CheckResult) -> str:
    """Return the number of rows that passed and failed a check; empty if nothing was counted.

    Example:
        >>> counts_of(CheckResult("notNull", "x is not null", passed=1200, failed=3))
        '1,200 passed, 3 failed'
    """
    if check.passed is None or check.failed is None:
        return ""
    return f"{check.passed:,} passed, {check.failed:,} failed"


def left_out_of(sample: Sample) -> str:
    """Return which columns of failing rows are not shown; empty if all are.

    Example:
        >>> left_out_of(Sample(("a",), (("1",),), left_out=("b", "c")))
        'not shown: b, c'
    """
    return f"not shown: {', '.join(sample.left_out)}" if sample.left_out else ""


def where(ref: Ref) -> str:
    """Return an item with its category.

    Example:
        >>> where(Ref("relation", "prices"))
        'relation prices'
    """
    return f"{ref.category} {ref.name}"


def anchor(ref: Ref) -> str:
    """Return the anchor of an item; characters that are unsafe in an id are encoded.

    Example:
        >>> anchor(Ref("relation", 'a "b"'))
        'relation-a~20~22b~22'
    """
    return f"{ref.category}-{re.sub(r'[^A-Za-z0-9_.-]', lambda found: f'~{ord(found[0]):x}', ref.name)}"


MOST_BOXES = 300
"""A larger drawing leaves the mappings out."""

LETTER, PADDING = 7.2, 26.0


def lineage_graph(document: Document) -> Drawing[Ref] | None:
    """Return the drawing of which item reads which, or None if none does; a large one has no mappings."""
    if len({ref for edge in document.edges() for ref in edge}) > MOST_BOXES:
        document = document.only(lambda ref: ref.category != "mapping")
    widths = {item.ref: len(shortened(item.ref.name)) * LETTER + PADDING for item in document.items}
    drawing = lay_out(widths, document.edges())
    return drawing if drawing.boxes else None


STYLE, SCRIPT = "page.css", "page.js"


def html_files(document: Document, *, is_inline: bool = True) -> Mapping[str, str]:
    """Return the page by its file name; the style sheet is a second file unless it is to be inline."""
    style, script = _packaged(STYLE), _packaged(SCRIPT)
    page = _environment().get_template("page.html.j2")
    text = page.render(
        document=document,
        chapters=_chapters(document),
        categories=CATEGORIES,
        checks=check_counts(check for _, check in document.checks()),
        graph=lineage_graph(document),
        known={item.ref: item for item in document.items},
        style=style if is_inline else None,
        style_file=STYLE,
        script=script,
        script_digest=b64encode(sha256(script.encode()).digest()).decode(),
    )
    return {"index.html": text} if is_inline else {"index.html": text, STYLE: style}


_SPECIAL = re.compile(r"([\\`*_{}\[\]<>()#|~!$&+\-])")
"""Characters that have a meaning in Markdown."""


def markdown_files(document: Document) -> Mapping[str, str]:
    """Return the page, for GitHub and most wikis, by its file name."""
    page = _environment(_in_markdown).get_template("page.md.j2")
    known = {item.ref for item in document.items}
    text = page.render(document=document, chapters=_chapters(document), known=known)
    return {"documentation.md": text.rstrip() + "\n"}


def _in_markdown(value: Any) -> Markup:
    """Return a value on one line, with every character that has a meaning in Markdown escaped."""
    if isinstance(value, Markup):  # of a filter or a macro
        return value
    return Markup(_SPECIAL.sub(r"\\\1", " ".join(str(value).split())))  # noqa: S704 - it is escaped


def _link(ref: Ref, known: Collection[Ref]) -> Markup:
    """Return the link to an item; the name alone of one that the page lacks, as of an imported project."""
    name = _in_markdown(where(ref))
    return name if ref not in known else Markup(f"[{name}](#{anchor(ref)})")  # noqa: S704 - it is escaped


def _cells(values: Iterable[str | None]) -> Markup:
    return Markup(" | ").join(_in_markdown("null" if value is None else value) for value in values)


def _code_block(code: str) -> Markup:
    fence = "`" * max(3, *(len(run) + 1 for run in re.findall(r"`+", code) or [""]))
    return Markup("\n".join((f"{fence}sql", code.strip("\n"), fence)))  # noqa: S704 - nothing ends the fence


def _typed(column: Column) -> str:
    return column.type if column.nullable or not column.type else f"{column.type} not null"


def _ending(check: CheckResult) -> str:
    if check.status is CheckStatus.NOT_RUN:
        return "not run"
    return ", ".join(filter(None, (check.status.value, counts_of(check), check.message)))


@cache
def _environment(finalize: Callable[[Any], Any] | None = None) -> Environment:
    """Return what renders templates; of Markdown, the function that escapes its values is given."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("lakewright.documentation.pages"),
        autoescape=True,
        finalize=finalize,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {
        "anchor": anchor,
        "assignments": _assignments,
        "cells": _cells,
        "check_counts": check_counts,
        "code_block": _code_block,
        "counts": counts_of,
        "ending": _ending,
        "left_out": left_out_of,
        "link": _link,
        "path": svg_path,
        "place": lambda ref: Markup(anchor(ref)),  # noqa: S704 - nothing in it needs to be escaped
        "search_text": _search_text,
        "shortened": shortened,
        "typed": _typed,
        "where": where,
        "words": lambda texts: " ".join(filter(None, texts)),
    }
    return environment


def _packaged(name: str) -> str:
    return files("lakewright.documentation.pages").joinpath(name).read_text("utf-8")


def _chapters(document: Document) -> list[tuple[str, str, tuple[Item, ...]]]:
    """Return category, title and items of each chapter that has items."""
    return [(name, title, document.of(name)) for name, title in CHAPTERS.items() if document.of(name)]


class _CheckCounts(NamedTuple):
    """How many checks are declared, how many of them have run, and how those ended."""

    declared: int
    completed: int
    failed: int

    @property
    def passed(self) -> int:
        return self.completed - self.failed


def check_counts(checks: Iterable[CheckResult]) -> _CheckCounts:
    """Return how many checks are declared, have run, and failed."""
    declared = list(checks)
    completed = [check for check in declared if check.status is not CheckStatus.NOT_RUN]
    return _CheckCounts(len(declared), len(completed), sum(check.is_bad for check in completed))


def _search_text(item: Item) -> str:
    """Return the lower-case text that the page's search looks in."""
    words = [item.ref.name, item.kind, item.description or "", item.code or ""]
    words += [f"{column.name} {column.description or ''}" for column in item.columns]
    words += [check.label for check in item.all_checks()]
    return " ".join(" ".join(words).lower().split())


def _assignments(values: Mapping[str, str]) -> str:
    return " ".join(f"{name}={value}" for name, value in values.items())
