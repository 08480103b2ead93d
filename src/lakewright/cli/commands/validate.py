"""`lakewright validate`: report every error of the project at once, without Spark."""

from __future__ import annotations

import click

from lakewright.cli.call import Call
from lakewright.cli.group import command
from lakewright.cli.page import Span, line
from lakewright.cli.render.words import counted

__all__ = ["validate"]

SECTIONS = {
    "relations": "relation",
    "mappings": "mapping",
    "targets": "target",
    "jobs": "job",
    "entities": "entity",
    "connections": "connection",
    "tests": "test",
}


@command(
    examples=["lakewright validate", "lakewright validate --project lake -o json"],
)
@click.pass_obj
def validate(call: Call, /) -> None:
    """Check all files of the project and report every error, with file and line.

    This needs no Spark and reads no data.
    """
    from lakewright.usecases.validate_project import validate_project

    validate_project(call.app)
    project = call.app.project
    counts = {section: len(getattr(project, section)) for section in SECTIONS}
    shown = ", ".join(counted(number, SECTIONS[section]) for section, number in counts.items() if number)
    document = {
        "project": project.name,
        "errors": [],
        "warnings": [fault.as_json() for fault in call.app.warnings],
        "counts": counts,
    }
    call.output.result(
        document, [line(Span(f"{project.name} is valid", "green"), f": {shown or 'nothing is declared'}")]
    )
