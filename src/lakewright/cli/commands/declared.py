"""`lakewright ls` and `lakewright show`: what the project declares."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import click

from lakewright.cli.call import Call
from lakewright.cli.completion import CATEGORIES, complete_definition
from lakewright.cli.group import command
from lakewright.cli.page import Line, Span, line, table_of, whole
from lakewright.errors import UsageError


@command(
    examples=["lakewright ls jobs", "lakewright ls entities -o json"],
)
@click.argument("section", type=click.Choice(["jobs", "targets", "entities", "relations", "mappings"]))
def ls(call: Call, /, section: str) -> None:
    """List the jobs, targets, entities, relations or mappings of the project."""
    from lakewright.usecases.declarations import list_section

    call.accept_faults()
    rows = list_section(call.app, section)
    call.output.answer(rows, [table_of(rows, f"no {section}")])


@command(
    examples=[
        "lakewright show job monthly",
        "lakewright show entity regions --types",
        "lakewright show regions --long",
    ],
)
@click.argument(
    "words", nargs=-1, required=True, metavar="[CATEGORY] NAME", shell_complete=complete_definition
)
@click.option("--types", is_flag=True, help="Of an entity: each column's type, and where it comes from.")
@click.option("--long", "is_long", is_flag=True, help="All of a name, as YAML of the long form.")
def show(call: Call, /, words: tuple[str, ...], *, types: bool, is_long: bool) -> None:
    """Show one definition of the project; an entity with the settings of its connection.

    CATEGORY is job, target, entity, relation, mapping or connection. It may be left out with --long.
    """
    from lakewright.usecases.declarations import show_definition

    call.accept_faults()
    name = words[-1]
    if is_long:
        _show_long(call, name)
        return
    if len(words) != 2 or words[0] not in CATEGORIES:
        raise UsageError(
            "show needs a category and a name",
            remedy=f"Write one of {', '.join(CATEGORIES)} and a name, or give --long.",
        )
    category = words[0]
    if types:
        _show_types(call, category, name)
        return
    document = show_definition(call.app, category, name)
    place = f" {document['location'] or ''}".rstrip()
    definition = line(Span(f"{category} {name}", "bold"), place, below=_branches(document["definition"]))
    call.output.answer(document, [definition])


def _show_long(call: Call, name: str) -> None:
    import yaml

    from lakewright.usecases.declarations import long_form

    document = long_form(call.app, name)
    text = yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=100)
    call.output.answer(document, [whole(each) for each in text.rstrip().splitlines()])


def _show_types(call: Call, category: str, name: str) -> None:
    from lakewright.usecases.declarations import entity_types

    if category != "entity":
        raise UsageError(f"a {category} has no types", remedy="--types is for an entity.")
    document = entity_types(call.app, name)
    rows = [{**each, "type": each["type"] or "not known yet"} for each in document["columns"]]
    call.output.answer(document, [table_of(rows, "no columns are known yet")])


def _branches(value: Any) -> Iterator[Line]:
    pairs = value.items() if isinstance(value, Mapping) else ((None, inner) for inner in value)
    for key, inner in pairs:
        yield _branch("-" if key is None else f"{key}:", inner)


def _branch(label: str, value: Any) -> Line:
    if isinstance(value, Mapping | list):
        return line(Span(label, "dim"), below=_branches(value))
    lines = str("" if value is None else value).splitlines() or [""]
    if len(lines) == 1:
        return line(Span(f"{label} ", "dim"), lines[0])
    return line(Span(label, "dim"), below=map(line, lines))
