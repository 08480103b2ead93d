"""`lakewright doctor`, `maintain` and `setup`: look after the machine, the project and its tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from lakewright.cli.call import Call
from lakewright.cli.commands.arguments import names_of, operator_options
from lakewright.cli.faults import FAILED
from lakewright.cli.group import command
from lakewright.cli.options import despite_faults
from lakewright.cli.page import Block, Line, Span, labelled, line
from lakewright.cli.progress import working
from lakewright.cli.render.run import maintenance_line
from lakewright.errors import LakewrightError, UsageError
from lakewright.errors.phrase import Command, Phrase
from lakewright.plan.permissions import Permissions
from lakewright.spec.words import counted
from lakewright.targets.entity.maintenance import Maintenance

if TYPE_CHECKING:
    from lakewright.doctor import RepairPlan
    from lakewright.usecases.diagnose import Check


@command
@click.argument("entity", required=False, shell_complete=names_of("entities"))
@click.option("--start", is_flag=True, help="Start a Spark session, too; this takes some seconds.")
@click.option(
    "--repair", is_flag=True, help="Show what would repair the table of ENTITY, and repair it if confirmed."
)
@click.option("--yes", "-y", is_flag=True, help="Repair without asking.")
@click.option("--allow-data-loss", is_flag=True, help="Allow the repair to remove duplicate rows.")
@operator_options
def doctor(call: Call, /, entity: str | None, *, start: bool, repair: bool, **options: Any) -> int:
    """Check Python, Java, Spark, Delta, its jars, the project, its manifest and its folders.

    With ENTITY, check its slices, its rows by the rules of its strategy, and its commits.

    Examples:
        lakewright doctor
        lakewright doctor --start
        lakewright doctor regions
        lakewright doctor regions --repair
        lakewright doctor regions --repair --yes --reason 'update by hand on Monday'
        lakewright doctor -o json
    """
    if entity is not None:
        return _repair(call, entity, **options) if repair else _diagnose(call, entity)
    if repair:
        raise UsageError(
            "--repair needs an entity", remedy=Phrase("Name it: ", Command("doctor", "ENTITY", "--repair"))
        )
    from lakewright.usecases.diagnose import machine_checks, reported_once

    with working(call.output, "checking"):
        found = (*machine_checks(call.environ), *_project_checks(call, start=start))
        return _print(call, list(reported_once(found)))


def _diagnose(call: Call, entity: str) -> int:
    from lakewright.usecases.diagnose import diagnose_entity

    with working(call.output, "checking"):
        found = diagnose_entity(call.app, entity)
    diagnosis = None if found.diagnosis is None else found.diagnosis.as_json()
    return _print(call, found.checks, {"diagnosis": diagnosis})


def _print(call: Call, checks: Sequence[Check], more: Mapping[str, Any] | None = None) -> int:
    is_ok = all(check.is_ok is not False for check in checks)
    document = {"ok": is_ok, "checks": [check.as_json() for check in checks], **(more or {})}
    call.output.result(document, _page(checks))
    return 0 if is_ok else FAILED


def _repair(call: Call, entity: str, *, yes: bool, allow_data_loss: bool, author: str, reason: str) -> int:
    from lakewright.usecases.diagnose import plan_repair, repair_table

    with working(call.output, "checking"):
        planned = plan_repair(call.app, entity, Permissions(allow_data_loss=allow_data_loss))
    if planned is None:
        nothing = line("Every rule holds: there is nothing to repair.")
        call.output.result({"repair": None, "version": None}, [nothing])
        return 0
    can = bool(planned.changed or planned.removed)
    version, page = None, _repair_page(planned)
    if not can or yes:
        call.output.page(() if call.output.is_json else page)
    if can and (yes or call.confirms("Repair?", "Nothing was written: give --yes to repair.", page)):
        with working(call.output, "repairing"):
            version = repair_table(call.app, entity, planned, author=author, reason=reason)
        call.output.note(line(Phrase(f"Repaired in version {version}; see ", Command("history"), ".")))
    if call.output.is_json:
        call.output.result({"repair": planned.as_json(), "version": version}, [])
    return 1 if planned.left or (can and version is None) else 0


def _repair_page(planned: RepairPlan) -> Iterator[Block]:
    goes = f", {planned.removed:,} would go" if planned.removed else ""
    yield line(Span(f"{counted(planned.changed, 'row')} of {planned.address} would change{goes}", "bold"))
    for row in planned.shown:
        key = ", ".join(f"{name}={value}" for name, value in row["key"].items())
        begin = f" from {row['valid_from']}" if "valid_from" in row else ""
        changes = tuple(
            line(f"{name}: ", Span(str(before), "red"), " -> ", Span(str(after), "green"))
            for name, (before, after) in row["changes"].items()
        )
        yield line(key, Span(begin, "dim"), below=changes)
    if planned.changed > len(planned.shown):
        yield line(f"… and {planned.changed - len(planned.shown):,} more")
    for finding in planned.left:
        yield labelled("stays", f"{finding.count:,} {finding.words}")
    if planned.doubled:
        yield line(
            f"{counted(planned.doubled, 'row')} could only be repaired by removing them: --allow-data-loss"
        )


def _project_checks(call: Call, *, start: bool) -> Iterator[Check]:
    from lakewright.usecases.diagnose import project_checks, unopened_project

    try:
        app = call.app
    except LakewrightError as error:
        yield unopened_project(error, is_named=call.settings.project is not None)
        return
    yield from project_checks(app, starts_session=start)


def _page(checks: Sequence[Check]) -> Iterator[Block]:
    width = max(len(check.name) for check in checks)
    marks = {
        True: Span("OK      ", "green"),
        False: Span("NOT OK  ", "bold red"),
        None: Span("SKIPPED ", "dim"),
    }
    for check in checks:
        below = (labelled("do", check.remedy),) if check.remedy else ()
        yield line(marks[check.is_ok], check.name.ljust(width), "  ", check.message, below=below)


@command
@click.argument("entities", metavar="[ENTITY]...", nargs=-1, shell_complete=names_of("entities"))
@click.option("--dry-run", is_flag=True, help="Only show what would be done.")
@despite_faults
def maintain(call: Call, /, entities: tuple[str, ...], *, dry_run: bool) -> None:
    """Compact the silver tables of ENTITY, or of all entities, if their `maintenance` settings ask for it.

    Runs also maintain tables.

    Examples:
        lakewright maintain
        lakewright maintain regions --dry-run
    """
    from lakewright.usecases.diagnose import maintain_table

    project = call.app.project
    found = {}
    for name in entities or tuple(project.entities):
        with working(call.output, f"maintaining {name}"):
            found[project.entity(name).name] = maintain_table(call.app, name, is_dry=dry_run)
    call.output.result(
        {name: upkeep.as_json() for name, upkeep in found.items()},
        [_branch(name, upkeep) for name, upkeep in found.items()],
    )
    call.output.last(_last(found))


def _branch(name: str, upkeep: Maintenance) -> Line:
    shape = upkeep.shape
    if shape is None:
        return line(Span(name, "bold"), " has no table yet")
    size = f" {counted(shape.files, 'file')}, {shape.size / 1e6:,.1f} MB"
    return line(Span(name, "bold"), Span(size, "dim"), below=(maintenance_line(upkeep.as_json()),))


def _last(found: Mapping[str, Maintenance]) -> str:
    done = sum(upkeep.is_done for upkeep in found.values())
    waiting = sum(bool(upkeep.reasons) and not upkeep.is_done for upkeep in found.values())
    return f"Done. COMPACTED={done} WAITING={waiting} FINE={len(found) - done - waiting}"


@command
def setup(call: Call, /) -> int:
    """Fetch Delta's jars, and make the archive of classes with which Spark starts in half the time.

    It takes about a minute and 190 MB.

    Examples:
        lakewright setup
    """
    from lakewright.usecases.diagnose import set_up

    with working(call.output, "preparing Spark"):
        done = set_up(call.environ)
    has_archive = done.archive is not None
    document = {
        "jars": str(done.jars),
        "fetched": done.fetched,
        "archive": str(done.archive) if has_archive else None,
        "made": has_archive and done.is_new,
    }
    archive = f"archive of classes {'made' if done.is_new else 'present'}: {done.archive}"
    lost = "the archive of classes could not be made; Spark starts without it"
    jars = f"{counted(done.fetched, 'jar')} fetched into {done.jars}"
    call.output.result(document, [line(jars), line(archive if has_archive else lost)])
    return 0 if has_archive else FAILED
