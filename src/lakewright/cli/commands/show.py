"""`lakewright show`: one definition of the project, as written, and where."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import click

from lakewright.cli.call import Call
from lakewright.cli.group import command
from lakewright.cli.page import Branch, Span, line
from lakewright.errors import UsageError
from lakewright.manifest.redact import HIDDEN
from lakewright.spec.expressions.secrets import is_secret_name
from lakewright.spec.suggestions import suggestion

if TYPE_CHECKING:
    from lakewright.spec.project import Project

__all__ = ["show"]

SECTIONS = {
    "job": "jobs",
    "target": "targets",
    "entity": "entities",
    "relation": "relations",
    "mapping": "mappings",
    "connection": "connections",
}


@command(
    examples=["lakewright show job monthly", "lakewright show entity regions -o json"],
)
@click.argument("category", type=click.Choice(list(SECTIONS)))
@click.argument("name")
@click.pass_obj
def show(call: Call, /, category: str, name: str) -> None:
    """Show one definition of the project; of an entity, with the settings that its connection gives it."""
    document = _document(call.app.project, category, name)
    head = line(Span(f"{category} {name}", "bold"), f" {document['location'] or ''}".rstrip())
    call.output.result(document, [Branch(head, tuple(_branches(document["definition"])))])


def _document(project: Project, category: str, name: str) -> dict[str, Any]:
    section: Mapping[str, Any] = getattr(project, SECTIONS[category])
    found = section.get(name)
    if found is None:
        raise UsageError(f"there is no {category} {name!r}", remedy=suggestion(name, section))
    if category in ("job", "entity"):
        declared = found.model_dump(mode="json", by_alias=True, exclude_defaults=True)
        location = None
    else:
        declared, location = found.raw, str(found.at())
    return {
        "category": category,
        "name": name,
        "location": location,
        "definition": _without_secrets(declared),
    }


def _without_secrets(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {
            key: HIDDEN if is_secret_name(str(key)) and isinstance(inner, str) else _without_secrets(inner)
            for key, inner in value.items()
        }
    return [_without_secrets(inner) for inner in value] if isinstance(value, list | tuple) else value


def _branches(value: Any) -> Iterator[Branch]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield _branch(Span(f"{key}: ", "dim"), inner)
    else:
        for inner in value:
            yield _branch(Span("- ", "dim"), inner)


def _branch(label: Span, value: Any) -> Branch:
    if isinstance(value, Mapping | list):
        return Branch(line(Span(label.text.rstrip(), label.style)), tuple(_branches(value)))
    lines = str("" if value is None else value).splitlines() or [""]
    if len(lines) == 1:
        return Branch(line(label, lines[0]))
    return Branch(line(Span(label.text.rstrip(), label.style)), tuple(Branch(line(text)) for text in lines))
