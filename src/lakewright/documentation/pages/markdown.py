"""The documentation as one Markdown page, for GitHub and most wikis."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from lakewright.checks.check import CheckResult, CheckStatus
from lakewright.documentation.document import (
    Column,
    Document,
    Item,
    Ref,
    Source,
)
from lakewright.documentation.pages.words import CHAPTERS, anchor, counts_of, left_out_of, where

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>()#|~!$&+\-])")


def markdown_files(document: Document) -> Mapping[str, str]:
    """Return the page by its file name."""
    return {"documentation.md": "\n".join(_lines(document)).rstrip() + "\n"}


def _lines(document: Document) -> Iterator[str]:
    version = f" {_text(document.version)}" if document.version else ""
    yield f"# {_text(document.project)}{version}"
    yield ""
    if document.description:
        yield from (_text(document.description), "")
    yield _text(f"Written by {document.tool} at {document.made}.")
    if document.job:
        given = " ".join(f"{name}={value}" for name, value in document.parameters.items())
        yield _text(f"Job {document.job} {given}".rstrip() + ".")
    if document.last_run is not None:
        run = document.last_run
        # A run that writes the page cannot know how it ends.
        label, status = ("Last run", f", {run.status}") if run.finished else ("Written during the run", "")
        yield _text(f"{label}: {run.job} up to {run.phase}{status}, {run.started}.")
    yield ""
    yield from _bad_checks(document)
    known = frozenset(item.ref for item in document.items)
    for category, title in CHAPTERS.items():
        items = document.of(category)
        if items:
            yield from (f"## {title}", "")
            for item in items:
                yield from _item(item, known)


def _bad_checks(document: Document) -> Iterator[str]:
    bad = [(item, check) for item, check in document.checks() if check.is_bad]
    if bad:
        yield from ("## Failed checks", "")
        yield from _table(
            ("item", "check", "result"),
            ((_link(item.ref, {item.ref}), _text(check.label), _text(_ending(check))) for item, check in bad),
        )


def _item(item: Item, known: Collection[Ref]) -> Iterator[str]:
    yield f'<a id="{anchor(item.ref)}"></a>'
    yield ""
    yield f"### {_text(item.ref.name)}"
    yield ""
    if item.description:
        yield from (_text(item.description), "")
    yield f"- kind: {_text(item.kind)}"
    for name, value in item.facts:
        yield f"- {_text(name)}: {_text(value)}"
    for title, refs in (("upstream", item.reads), ("downstream", item.read_by)):
        if refs:
            yield f"- {title}: {', '.join(_link(ref, known) for ref in refs)}"
    for ending in item.endings:
        why = f": {'; '.join(ending.reasons)}" if ending.reasons else ""
        yield f"- {ending.phase}: {_text(f'{ending.status}{why}')}"
    if item.note:
        yield f"- note: {_text(item.note)}"
    yield ""
    yield from _code(item.code)
    yield from _columns(item.columns, known)
    yield from _checks(item.all_checks())


def _code(code: str | None) -> Iterator[str]:
    if code:
        fence = "`" * max(3, *(len(run) + 1 for run in re.findall(r"`+", code) or [""]))
        yield from (f"{fence}sql", code.strip("\n"), fence, "")


def _columns(columns: Sequence[Column], known: Collection[Ref]) -> Iterator[str]:
    if columns:
        yield from _table(
            ("column", "type", "description", "comes from"),
            (
                (
                    _text(column.name),
                    _text(", ".join([_typed(column), *column.marks])),
                    _text(column.description or ""),
                    _sources(column, known),
                )
                for column in columns
            ),
        )


def _typed(column: Column) -> str:
    return column.type if column.nullable or not column.type else f"{column.type} not null"


def _sources(column: Column, known: Collection[Ref]) -> str:
    if column.made:
        return _text(column.made)
    return ", ".join(_source(each, known) for each in column.origins or column.sources)


def _source(source: Source, known: Collection[Ref]) -> str:
    return f"{_link(source.item, known)}.{_text(source.column)}"


def _checks(checks: Sequence[CheckResult]) -> Iterator[str]:
    if checks:
        yield from _table(
            ("check", "result", "description"),
            ((_text(each.label), _text(_ending(each)), _text(each.description or "")) for each in checks),
        )
    for each in checks:
        if each.sample.rows:
            yield from (f"Failing rows: {_text(each.label)}", "")
            rows = [[_text("null" if value is None else value) for value in row] for row in each.sample.rows]
            yield from _table(list(map(_text, each.sample.columns)), rows)
            if each.sample.left_out:
                yield from (_text(left_out_of(each.sample)), "")


def _ending(check: CheckResult) -> str:
    if check.status is CheckStatus.NOT_RUN:
        return "not run"
    return ", ".join(filter(None, (check.status.value, counts_of(check), check.message)))


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield f"|{'---|' * len(head)}"
    for row in rows:
        yield f"| {' | '.join(row)} |"
    yield ""


def _link(ref: Ref, known: Collection[Ref]) -> str:
    """Return the link to an item; the name alone of one that the page lacks, as of an imported project."""
    if ref not in known:
        return _text(where(ref))
    return f"[{_text(where(ref))}](#{anchor(ref)})"


def _text(text: str) -> str:
    """Return a text on one line, with every character that has a meaning in Markdown escaped."""
    return _SPECIAL.sub(r"\\\1", " ".join(text.split()))
