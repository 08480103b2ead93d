"""`lakewright doctor`: whether machine, project and one entity's table are sound, with what to do if not."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import click

from lakewright.cli.call import Call
from lakewright.cli.checks import (
    Check,
    diagnosis_checks,
    entity_checks,
    machine_checks,
    no_project,
    project_checks,
)
from lakewright.cli.commands.manifest.verbs import author_option
from lakewright.cli.group import command
from lakewright.cli.page import Block, Branch, Span, line
from lakewright.cli.progress import working
from lakewright.cli.render.words import counted
from lakewright.errors import LakewrightError, UsageError
from lakewright.plan.permissions import Permissions

if TYPE_CHECKING:
    from lakewright.doctor.examination import Repair
    from lakewright.spec.models.entity import Entity

__all__ = ["doctor"]


@command(
    examples=[
        "lakewright doctor",
        "lakewright doctor --start",
        "lakewright doctor regions",
        "lakewright doctor regions --repair",
        "lakewright doctor regions --repair --yes --reason 'update by hand on Monday'",
        "lakewright doctor -o json",
    ],
)
@click.argument("entity", required=False)
@click.option("--start", is_flag=True, help="Start a Spark session too, which takes some seconds.")
@click.option(
    "--repair", is_flag=True, help="Show what would mend the table of ENTITY, and do it if told so."
)
@click.option("--yes", is_flag=True, help="Repair without being asked.")
@click.option("--allow-data-loss", is_flag=True, help="Let the repair remove rows that are there twice.")
@author_option("Who repairs it.")
@click.option("--reason", metavar="TEXT", default="none given", help="Why; kept with the commit.")
@click.pass_obj
def doctor(call: Call, /, entity: str | None, *, start: bool, repair: bool, **options: Any) -> int:
    """Check Python, Java, Spark, Delta, its jars, the project, its manifest and its folders.

    Each is OK, or comes with what to do about it. With ENTITY, check its slices instead, the rows of its
    silver table by the rules of its strategy, and whether it holds the commits that the manifest knows of.
    """
    if entity is None:
        if repair:
            raise UsageError("--repair needs an entity", remedy="Name it: lakewright doctor ENTITY --repair")
        with working(call.output, "looking"):
            return _answer(call, [*machine_checks(call.environ), *_of_project(call, start=start)])
    found = call.app.project.entity(entity)
    if repair:
        permissions = Permissions(allow_data_loss=options.pop("allow_data_loss"))
        return _repair(call, found, permissions, **options)
    with working(call.output, "looking"):
        checks = list(entity_checks(call.app, found))
        try:
            diagnosis = call.app.examine(found)
        except LakewrightError as error:
            checks.append(Check("rows", False, str(error), error.remedy))
            return _answer(call, checks, {"diagnosis": None})
        checks.extend(diagnosis_checks(found, diagnosis))
    return _answer(call, checks, {"diagnosis": diagnosis.as_json()})


def _answer(call: Call, checks: list[Check], more: Mapping[str, Any] | None = None) -> int:
    is_ok = all(check.is_ok is not False for check in checks)
    document = {"ok": is_ok, "checks": [check.as_json() for check in checks], **(more or {})}
    call.output.result(document, _page(checks))
    return 0 if is_ok else 1


def _repair(
    call: Call, entity: Entity, permissions: Permissions, *, yes: bool, author: str, reason: str
) -> int:
    with working(call.output, "looking"):
        planned = call.app.plan_repair(entity, permissions)
    if planned is None:
        call.output.result(
            {"repair": None, "version": None}, [line("Every rule holds: nothing is to repair.")]
        )
        return 0
    treatment = planned.treatment
    can = bool(treatment.changed or treatment.removed)
    version = None
    if not call.output.is_json:
        call.output.result({}, _repair_page(planned))
    if can and (yes or _is_told(call)):
        with working(call.output, "repairing"):
            version = call.app.repair(entity, planned, author=author, reason=reason)
        call.output.note(line(f"Repaired in version {version}; `lakewright history` keeps it."))
    if call.output.is_json:
        call.output.result({"repair": treatment.as_json(), "version": version}, [])
    return 1 if treatment.left or (can and version is None) else 0


def _is_told(call: Call) -> bool:
    if call.output.is_json or not sys.stdin.isatty():
        call.output.note(line("Nothing was written: give --yes to repair."))
        return False
    return click.confirm("Repair?", err=True)


def _repair_page(planned: Repair) -> Iterator[Block]:
    treatment = planned.treatment
    goes = f", {treatment.removed:,} would go" if treatment.removed else ""
    yield line(Span(f"{counted(treatment.changed, 'row')} of {planned.address} would change{goes}", "bold"))
    for row in treatment.shown:
        key = ", ".join(f"{name}={value}" for name, value in row["key"].items())
        begin = f" from {row['valid_from']}" if "valid_from" in row else ""
        changes = tuple(
            Branch(line(f"{name}: ", Span(str(before), "red"), " -> ", Span(str(after), "green")))
            for name, (before, after) in row["changes"].items()
        )
        yield Branch(line(key, Span(begin, "dim")), changes)
    if treatment.changed > len(treatment.shown):
        yield line(f"… and {treatment.changed - len(treatment.shown):,} more")
    for finding in treatment.left:
        yield line(Span("stays: ", "yellow"), f"{finding.count:,} {finding.words}")
    if treatment.doubled:
        yield line(
            f"{counted(treatment.doubled, 'row')} could only be mended by removing them: --allow-data-loss"
        )


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
