"""The documentation as one page of HTML that needs nothing from elsewhere.

Every text of the project's is escaped; the page's own script is the only one that a browser runs on it.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from html import escape
from importlib.resources import files

from lakewright.documentation.document import CheckStatus, Document
from lakewright.documentation.pages.cards import card
from lakewright.documentation.pages.graph import graph_svg
from lakewright.documentation.pages.words import CHAPTERS, anchor, counts_of, where

__all__ = ["html_files"]

STYLE, SCRIPT = "page.css", "page.js"


def html_files(document: Document, *, is_inline: bool = True) -> Mapping[str, str]:
    """Return the page, and its style in a file of its own unless that is to be inside of it."""
    style = _packaged(STYLE)
    head = f"<style>\n{style}</style>" if is_inline else f'<link rel="stylesheet" href="{STYLE}">'
    page = {"index.html": "\n".join(_page(document, head))}
    return page if is_inline else page | {STYLE: style}


def _packaged(name: str) -> str:
    return files("lakewright.documentation.pages").joinpath(name).read_text("utf-8")


def _page(document: Document, style: str) -> Iterator[str]:
    script = _packaged(SCRIPT)
    digest = b64encode(sha256(script.encode()).digest()).decode()
    yield "<!doctype html>"
    yield '<html lang="en">'
    yield "<head>"
    yield '<meta charset="utf-8">'
    yield (
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
        f"style-src 'self' file: 'unsafe-inline'; script-src 'sha256-{digest}'; base-uri 'none'; "
        "form-action 'none'\">"
    )
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield f"<title>{escape(document.project)}</title>"
    yield style
    yield "</head>"
    yield "<body>"
    yield from _sidebar(document)
    yield "<main>"
    yield from _head(document)
    yield from _problems(document)
    yield from _lineage(document)
    yield from _chapters(document)
    yield from _jobs(document)
    yield f"<footer>{escape(document.tool)} wrote this at {_time(document.made)}.</footer>"
    yield "</main>"
    yield f"<script>{script}</script>"
    yield "</body>"
    yield "</html>"
    yield ""


def _sidebar(document: Document) -> Iterator[str]:
    yield "<nav>"
    yield f'<a class="home" href="#top">{escape(document.project)}</a>'
    yield '<input type="search" id="search" placeholder="Search: names, columns …  /" aria-label="Search">'
    kinds = [(category, title) for category, title in CHAPTERS.items() if document.of(category)]
    if any(item.is_bad for item in document.items):
        kinds.append(("problems", "Problems"))
    yield '<div class="filters">'
    for kind, title in kinds:
        yield f'<button type="button" data-filter="{kind}" aria-pressed="false">{title}</button>'
    yield "</div>"
    yield '<p id="found" role="status" hidden></p>'
    yield '<div class="contents">'
    for category, title in CHAPTERS.items():
        items = document.of(category)
        if items:
            yield f"<h2>{title} <small>{len(items)}</small></h2><ul>"
            for item in items:
                bad = ' class="bad"' if item.is_bad else ""
                yield (
                    f'<li data-for="{anchor(item.ref)}"><a{bad} href="#{anchor(item.ref)}">'
                    f"{escape(item.ref.name)}</a></li>"
                )
            yield "</ul>"
    yield "</div></nav>"


def _head(document: Document) -> Iterator[str]:
    version = f" <small>{escape(document.version)}</small>" if document.version else ""
    yield '<header id="top">'
    yield '<button type="button" id="theme" aria-label="Light or dark" title="Light or dark">◐</button>'
    yield f"<h1>{escape(document.project)}{version}</h1>"
    if document.description:
        yield f'<p class="lead">{escape(document.description)}</p>'
    yield f'<p class="about">{"".join(_about(document))}</p>'
    yield '<div class="tiles">'
    for category, title in CHAPTERS.items():
        if items := document.of(category):
            yield _tile(str(len(items)), title if len(items) > 1 else category.capitalize())
    yield from _check_tile(document)
    yield "</div></header>"


def _about(document: Document) -> Iterator[str]:
    if document.job:
        given = _assignments(document.parameters)
        yield f"<span>Job <code>{escape(f'{document.job} {given}'.strip())}</code></span>"
    run = document.last_run
    if run is not None:
        yield (
            f'<span>Last run <span class="status {escape(run.status)}">{escape(run.status)}</span> '
            f"<code>{escape(f'{run.job} {run.phase.lower()} {_assignments(run.parameters)}'.strip())}</code> "
            f"at {_time(run.started)}</span>"
        )
    yield f"<span>Written {_time(document.made)}</span>"


def _assignments(values: Mapping[str, str]) -> str:
    return " ".join(f"{name}={value}" for name, value in values.items())


def _time(instant: str) -> str:
    shown = instant[:16].replace("T", " ")
    return f'<time datetime="{escape(instant)}">{escape(shown)} UTC</time>'


def _tile(number: str, text: str, mark: str = "") -> str:
    return f'<div class="tile {mark}"><b>{escape(number)}</b><span>{escape(text)}</span></div>'


def _check_tile(document: Document) -> Iterator[str]:
    checks = [check for _, check in document.checks()]
    tried = [check for check in checks if check.status is not CheckStatus.NOT_RUN]
    bad = sum(check.is_bad for check in tried)
    if tried:
        yield _tile(f"{len(tried) - bad}/{len(tried)}", "checks hold", "bad" if bad else "good")
    elif checks:
        yield _tile(str(len(checks)), "checks, not tried")


def _problems(document: Document) -> Iterator[str]:
    lines = [*_bad_checks(document), *_bad_endings(document)]
    if lines:
        yield '<section class="problems"><h2>Needs a look</h2><ul>'
        yield from lines
        yield "</ul></section>"


def _bad_checks(document: Document) -> Iterator[str]:
    for item, check in document.checks():
        if check.is_bad:
            told = counts_of(check) or check.message or ""
            yield (
                f'<li><span class="status {check.status}">{check.status}</span> '
                f'<a href="#{anchor(item.ref)}">{escape(where(item.ref))}</a>: {escape(check.label)} '
                f"<small>{escape(told)}</small></li>"
            )


def _bad_endings(document: Document) -> Iterator[str]:
    for item in document.of("target"):
        for ending in item.endings:
            if ending.status in ("FAILED", "BLOCKED", "ABORTED"):
                told = ending.error or "; ".join(ending.reasons)
                yield (
                    f'<li><span class="status {escape(ending.status)}">{escape(ending.status)}</span> '
                    f'<a href="#{anchor(item.ref)}">{escape(where(item.ref))}</a> in {escape(ending.phase)} '
                    f"<small>{escape(told)}</small></li>"
                )


def _lineage(document: Document) -> Iterator[str]:
    drawing = graph_svg(document)
    if drawing:
        yield '<section class="lineage"><h2>Lineage</h2>'
        yield f'<div class="scroll" tabindex="0">{drawing}</div>'
        yield '<p class="legend">'
        for category in ("relation", "mapping", "target", "entity"):
            if document.of(category):
                yield f'<span class="key {category}">{category}</span>'
        yield "</p></section>"


def _chapters(document: Document) -> Iterator[str]:
    for category, title in CHAPTERS.items():
        items = document.of(category)
        if items:
            yield f'<section class="chapter" data-chapter="{category}"><h2>{title}</h2>'
            yield from (card(item) for item in items)
            yield "</section>"


def _jobs(document: Document) -> Iterator[str]:
    if document.jobs:
        yield '<section class="jobs"><h2>Jobs</h2><div class="scroll"><table>'
        yield "<thead><tr><th>job</th><th>parameters</th><th>targets</th><th>what it is for</th></tr></thead>"
        for name, description, parameters, targets in document.jobs:
            cells = (name, ", ".join(parameters), ", ".join(targets), description or "")
            yield _row(cells)
        yield "</table></div></section>"


def _row(cells: Iterable[str]) -> str:
    return f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in cells)}</tr>"
