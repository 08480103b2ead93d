"""`lakewright ls`: list what the project declares."""

from __future__ import annotations

from typing import Any

import click

from lakewright.cli.call import Call
from lakewright.cli.group import command
from lakewright.cli.page import Table, line

__all__ = ["ls"]


@command(
    examples=["lakewright ls jobs", "lakewright ls entities -o json"],
)
@click.argument("section", type=click.Choice(["jobs", "targets", "entities", "relations", "mappings"]))
@click.pass_obj
def ls(call: Call, /, section: str) -> None:
    """List the jobs, targets, entities, relations or mappings of the project."""
    from lakewright.usecases.declarations import list_section

    call.accept_faults()
    rows = list_section(call.app, section)
    columns = tuple(rows[0]) if rows else ()
    table = Table(columns, tuple(tuple(line(_shown(value)) for value in row.values()) for row in rows))
    call.output.answer(rows, [table if rows else line(f"no {section}")])


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return "" if value is None else " ".join(str(value).split())
