"""The documentation as one self-contained HTML page, made from the Jinja2 templates next to this module.

Autoescape is on: every text of the project is escaped. The content security policy lets a browser run the
page's own script only. The lineage is a drawing: a box for each item, a line from each item to those that
read it.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import TYPE_CHECKING, NamedTuple

from lakewright.checks.check import CheckResult, CheckStatus
from lakewright.documentation.document import CATEGORIES, Document, Item, Ref
from lakewright.documentation.pages.layout import Drawing, lay_out, shortened, svg_path
from lakewright.documentation.pages.words import CHAPTERS, anchor, counts_of, left_out_of, where

if TYPE_CHECKING:
    from jinja2 import Environment


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
        checks=_check_counts(check for _, check in document.checks()),
        problems=[*_failed_checks(document), *_failed_phases(document)],
        graph=lineage_graph(document),
        known={item.ref: item for item in document.items},
        style=style if is_inline else None,
        style_file=STYLE,
        script=script,
        script_digest=b64encode(sha256(script.encode()).digest()).decode(),
    )
    return {"index.html": text} if is_inline else {"index.html": text, STYLE: style}


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("lakewright.documentation.pages"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {
        "anchor": anchor,
        "assignments": _assignments,
        "check_counts": _check_counts,
        "counts": counts_of,
        "left_out": left_out_of,
        "path": svg_path,
        "search_text": _search_text,
        "shortened": shortened,
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


def _check_counts(checks: Iterable[CheckResult]) -> _CheckCounts:
    declared = list(checks)
    completed = [check for check in declared if check.status is not CheckStatus.NOT_RUN]
    return _CheckCounts(len(declared), len(completed), sum(check.is_bad for check in completed))


class _Problem(NamedTuple):
    """A line of the section "Needs attention"."""

    status: str
    item: Ref
    subject: str
    message: str


def _failed_checks(document: Document) -> Iterator[_Problem]:
    for item, check in document.checks():
        if check.is_bad:
            message = counts_of(check) or check.message or ""
            yield _Problem(check.status, item.ref, f": {check.label}", message)


def _failed_phases(document: Document) -> Iterator[_Problem]:
    for item in document.of("target"):
        for ending in item.endings:
            if ending.is_bad:
                message = ending.error or "; ".join(ending.reasons)
                yield _Problem(ending.status, item.ref, f" in {ending.phase}", message)


def _search_text(item: Item) -> str:
    """Return the lower-case text that the page's search looks in."""
    words = [item.ref.name, item.kind, item.description or "", item.code or ""]
    words += [f"{column.name} {column.description or ''}" for column in item.columns]
    words += [check.label for check in item.all_checks()]
    return " ".join(" ".join(words).lower().split())


def _assignments(values: Mapping[str, str]) -> str:
    return " ".join(f"{name}={value}" for name, value in values.items())
