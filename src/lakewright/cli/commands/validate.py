"""`lakewright validate`: report every error of the project at once, without Spark."""

from __future__ import annotations

from contextlib import nullcontext

import click

from lakewright.cli.call import Call
from lakewright.cli.group import command
from lakewright.cli.page import Span, line
from lakewright.cli.progress import working
from lakewright.cli.render.words import counted
from lakewright.errors import SpecError

__all__ = ["validate"]

SECTIONS = {
    "relations": "relation",
    "mappings": "mapping",
    "targets": "target",
    "jobs": "job",
    "entities": "entity",
    "connections": "connection",
    "tests": "test",
    "triggers": "trigger",
}


@command(
    examples=[
        "lakewright validate",
        "lakewright validate --project lake -o json",
        "lakewright validate --spark",
    ],
)
@click.option("--spark", is_flag=True, help="Let Spark analyse every mapping, too, over tables without rows.")
@click.pass_obj
def validate(call: Call, /, *, spark: bool) -> None:
    """Check all files of the project and report every error, with file and line.

    This needs no Spark and reads no data. Expressions are evaluated as each job would, with stand-ins for
    its parameters, and Spark's SQL is parsed. What the parser rejects is a warning; Spark may accept it.
    """
    from lakewright.usecases.validate_project import validate_project

    with working(call.output, "analysing") if spark else nullcontext():
        validation = validate_project(call.app, with_spark=spark)
    for fault in validation.warnings:
        call.output.note(line(Span("warning: ", "yellow"), fault.phrase))
    if validation.errors:
        raise SpecError(validation.errors)
    project = call.app.project
    counts = {section: len(getattr(project, section)) for section in SECTIONS}
    shown = ", ".join(counted(number, SECTIONS[section]) for section, number in counts.items() if number)
    analysed = f"; Spark accepts {counted(validation.analysed, 'mapping')}" if spark else ""
    document = {
        "project": project.name,
        "errors": [],
        "warnings": [fault.as_json() for fault in (*call.app.warnings, *validation.warnings)],
        "counts": counts,
    }
    found = f": {shown or 'nothing is declared'}{analysed}"
    call.output.result(document, [line(Span(f"{project.name} is valid", "green"), found)])
