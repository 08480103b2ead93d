"""One item as a part of the page that opens and closes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape

from lakewright.documentation.document import CheckResult, CheckStatus, Column, Item, Ref, Source
from lakewright.documentation.pages.words import anchor, counts_of

__all__ = ["card"]


def card(item: Item) -> str:
    """Return an item with all that is told of it; its first line shows while it is closed."""
    return "\n".join(_card(item))


def _card(item: Item) -> Iterator[str]:
    bad = " bad" if item.is_bad else ""
    yield (
        f'<details class="item {item.ref.category}{bad}" id="{anchor(item.ref)}" '
        f'data-text="{escape(_searched(item))}">'
    )
    described = f'<span class="told">{escape(item.description)}</span>' if item.description else ""
    yield (
        f"<summary><h3>{escape(item.ref.name)}</h3>"
        f'<span class="kind">{escape(item.kind)}</span>{described}{"".join(_badges(item))}</summary>'
    )
    yield '<div class="body">'
    if item.note:
        yield f'<p class="note">{escape(item.note)}</p>'
    yield from _neighbours(item)
    yield from _facts(item)
    yield from _endings(item)
    yield from _columns(item)
    yield from _checks(item.all_checks())
    if item.code:
        yield f"<pre><code>{escape(item.code.strip())}</code></pre>"
    yield "</div></details>"


def _searched(item: Item) -> str:
    words = [item.ref.name, item.kind, item.description or "", item.code or ""]
    words += [f"{column.name} {column.description or ''}" for column in item.columns]
    words += [check.label for check in item.all_checks()]
    return " ".join(" ".join(words).lower().split())


def _badges(item: Item) -> Iterator[str]:
    tried = [check for check in item.all_checks() if check.status is not CheckStatus.NOT_RUN]
    if tried:
        good = sum(not check.is_bad for check in tried)
        mark = "good" if good == len(tried) else "bad"
        yield f'<span class="badge {mark}" title="checks that hold">{good}/{len(tried)} checks</span>'
    if item.last_status:
        yield f'<span class="status {escape(item.last_status)}">{escape(item.last_status)}</span>'


def _neighbours(item: Item) -> Iterator[str]:
    for told, refs in (
        ("Made of", item.reads),
        ("Read by" if item.ref.category != "target" else "Fills", item.read_by),
    ):
        if refs:
            yield f'<p class="near"><b>{told}</b> {" ".join(map(_link, refs))}</p>'


def _link(ref: Ref) -> str:
    return f'<a class="chip {ref.category}" href="#{anchor(ref)}">{escape(ref.name)}</a>'


def _facts(item: Item) -> Iterator[str]:
    if item.facts:
        told = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in item.facts)
        yield f"<dl>{told}</dl>"


def _endings(item: Item) -> Iterator[str]:
    if item.endings:
        yield '<div class="scroll"><table><thead><tr><th>phase</th><th>last run</th><th>why</th>'
        yield "<th>took</th></tr></thead>"
        for ending in item.endings:
            why = "; ".join([*ending.reasons, *([ending.error] if ending.error else [])])
            yield (
                f"<tr><td>{escape(ending.phase)}</td>"
                f'<td><span class="status {escape(ending.status)}">{escape(ending.status)}</span></td>'
                f'<td>{escape(why)}</td><td class="number">{ending.seconds:.1f} s</td></tr>'
            )
        yield "</table></div>"


def _columns(item: Item) -> Iterator[str]:
    if not item.columns:
        return
    has_sources = any(column.sources or column.origins or column.made for column in item.columns)
    has_checks = any(column.checks for column in item.columns)
    heads = ["column", "type", "description", *(["comes from"] * has_sources), *(["checks"] * has_checks)]
    yield '<div class="scroll"><table class="columns"><thead><tr>'
    yield "".join(f"<th>{head}</th>" for head in heads)
    yield "</tr></thead>"
    for column in item.columns:
        cells = [_named(column), _typed(column), escape(column.description or "")]
        cells += [_sources(column)] * has_sources + ["".join(map(_mark, column.checks))] * has_checks
        yield f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"
    yield "</table></div>"


def _named(column: Column) -> str:
    marks = "".join(f'<span class="mark">{escape(mark)}</span>' for mark in column.marks)
    return f"<code>{escape(column.name)}</code>{marks}"


def _typed(column: Column) -> str:
    never_null = "" if column.nullable or not column.type else ' <span class="mark">not null</span>'
    return f'<span class="type">{escape(column.type)}</span>{never_null}'


def _sources(column: Column) -> str:
    made = [f"<code>{escape(column.made)}</code>"] if column.made else []
    direct = list(map(_source, column.sources))
    first = [_source(each) for each in column.origins if each not in column.sources]
    beginning = [f'<span class="origin">from {" ".join(first)}</span>'] if first else []
    return " ".join([*made, *direct, *beginning])


def _source(source: Source) -> str:
    return (
        f'<a class="source {source.item.category}" href="#{anchor(source.item)}">'
        f"{escape(source.item.name)}.<wbr><b>{escape(source.column)}</b></a>"
    )


def _mark(check: CheckResult) -> str:
    told = ", ".join(filter(None, (check.label, check.status.value, counts_of(check), check.message)))
    sign = {CheckStatus.SUCCESS: "✓", CheckStatus.NOT_RUN: "·"}.get(check.status, "✗")
    return f'<span class="try {check.status}" title="{escape(told)}">{sign} {escape(check.kind)}</span>'


def _checks(checks: Sequence[CheckResult]) -> Iterator[str]:
    if not checks:
        return
    yield '<div class="scroll"><table class="checks"><thead><tr><th>check</th><th>ended</th>'
    yield '<th class="number">passed</th><th class="number">failed</th></tr></thead>'
    for check in checks:
        meaning = f"<br><small>{escape(check.description)}</small>" if check.description else ""
        message = f"<br><small>{escape(check.message)}</small>" if check.message else ""
        yield (
            f'<tr class="{check.status}"><td>{escape(check.label)}{meaning}</td>'
            f'<td><span class="status {check.status}">{_ended(check)}</span>{message}</td>'
            f'<td class="number">{_number(check.passed)}</td>'
            f'<td class="number">{_number(check.failed)}</td></tr>'
        )
    yield "</table></div>"
    for check in checks:
        yield from _sample(check)


def _ended(check: CheckResult) -> str:
    return "not tried" if check.status is CheckStatus.NOT_RUN else escape(check.status.value)


def _number(value: int | None) -> str:
    return "" if value is None else f"{value:,}"


def _sample(check: CheckResult) -> Iterator[str]:
    if check.sample.rows:
        yield f'<p class="sample">Some that fail: <b>{escape(check.label)}</b></p>'
        yield '<div class="scroll"><table class="sample"><thead><tr>'
        yield "".join(f"<th>{escape(name)}</th>" for name in check.sample.columns)
        yield "</tr></thead>"
        for row in check.sample.rows:
            yield f"<tr>{''.join(_cells(row))}</tr>"
        yield "</table></div>"


def _cells(row: Iterable[str | None]) -> Iterator[str]:
    for value in row:
        yield '<td class="null">null</td>' if value is None else f"<td>{escape(value)}</td>"
