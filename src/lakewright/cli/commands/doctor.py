"""`lakewright doctor`: whether machine and project have what a run needs, with a remedy for each lack."""

from __future__ import annotations

from collections.abc import Iterator

import click

from lakewright.cli.call import Call
from lakewright.cli.checks import Check, entity_checks, machine_checks, no_project, project_checks
from lakewright.cli.group import command
from lakewright.cli.page import Block, Branch, Span, line
from lakewright.cli.progress import working
from lakewright.errors import LakewrightError

__all__ = ["doctor"]


@command(
    examples=[
        "lakewright doctor",
        "lakewright doctor --start",
        "lakewright doctor regions",
        "lakewright doctor -o json",
    ],
)
@click.argument("entity", required=False)
@click.option("--start", is_flag=True, help="Start a Spark session too, which takes some seconds.")
@click.pass_obj
def doctor(call: Call, /, entity: str | None, *, start: bool) -> int:
    """Check Python, Java, Spark, Delta, its jars, the project, its manifest and its folders.

    Each is OK, or comes with what to do about it. With ENTITY, check its slices and its silver table instead.
    """
    with working(call.output, "looking"):
        if entity is not None:
            checks = list(entity_checks(call.app, call.app.project.entity(entity)))
        else:
            checks = [*machine_checks(call.environ), *_of_project(call, start=start)]
    is_ok = all(check.is_ok is not False for check in checks)
    call.output.result({"ok": is_ok, "checks": [check.as_json() for check in checks]}, _page(checks))
    return 0 if is_ok else 1


def _of_project(call: Call, *, start: bool) -> Iterator[Check]:
    try:
        app = call.app
    except LakewrightError as error:
        yield no_project(error, is_named=call.settings.project is not None)
        return
    yield from project_checks(app, starts_session=start)


def _page(checks: list[Check]) -> Iterator[Block]:
    width = max(len(check.name) for check in checks)
    marks = {
        True: Span("OK      ", "green"),
        False: Span("NOT OK  ", "bold red"),
        None: Span("SKIPPED ", "dim"),
    }
    for check in checks:
        below = (Branch(line(Span("do: ", "dim"), check.remedy)),) if check.remedy else ()
        yield Branch(line(marks[check.is_ok], check.name.ljust(width), "  ", check.message), below)
