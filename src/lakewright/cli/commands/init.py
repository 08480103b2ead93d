"""`lakewright init` and `lakewright demo`: write a project, and run it."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from lakewright.cli.call import Call
from lakewright.cli.commands.apply import take_steps
from lakewright.cli.group import command
from lakewright.cli.page import Block, Span, line, took, whole
from lakewright.due.words import plan_document
from lakewright.errors import UsageError
from lakewright.errors.phrase import Command, Phrase
from lakewright.spec.words import counted

TEMPLATES = {
    "minimal": (
        ("apply",),
        Phrase("Then look at all versions: ", Command("sql", "SELECT * FROM people.history"), "."),
    ),
    "entities": (
        ("job", "daily", "verify"),
        Phrase("Then look at what the second day changed: ", Command("sql", "SELECT * FROM prices"), "."),
    ),
    "full": (
        ("job", "daily", "verify", "day:start=2022-01-01", "day:end=2022-01-03"),
        Phrase("Then open generated-documentation/index.html, and run its tests: ", Command("test"), "."),
    ),
}
"""Templates by name, with the first command to type and what to do next."""


@command
@click.argument("folder", metavar="[DIR]", required=False, default=".", type=click.Path(path_type=Path))
@click.option(
    "--template",
    type=click.Choice(list(TEMPLATES)),
    default="minimal",
    show_default=True,
    help="minimal: one entity, one table; entities: one for each strategy; full: all sections.",
)
@click.option(
    "--from",
    "places",
    metavar="PLACE",
    multiple=True,
    help="A folder or a file, here or in s3://. May be repeated.",
)
@click.option(
    "--from-dbt",
    "dbt",
    metavar="PROJECT",
    type=click.Path(path_type=Path),
    help="A dbt project, whose snapshots become entities.",
)
def init(call: Call, /, folder: Path, *, template: str, places: tuple[str, ...], dbt: Path | None) -> None:
    """Write a small project into DIR, by default the current folder.

    With --from, its entities are those of existing files.

    Examples:
        lakewright init
        lakewright init lake
        lakewright init sales --template full
        lakewright init shop --from landing
        lakewright init shop --from-dbt ../dbt-shop
    """
    if places or dbt is not None:
        _draft(call, folder, places, dbt)
        return
    from lakewright.usecases.declarations import packaged, write_project

    typed, then = TEMPLATES[template]
    count = write_project(packaged("templates", template), folder)
    head = f"{counted(count, 'file')} written to {folder}" if count else f"{folder} has this project already"
    call.output.result(
        {"folder": str(folder.resolve()), "template": template, "files": count},
        [
            line(head),
            line("Run it:  ", Span(Command(*typed, "--project", str(folder)), "bold")),
            line(then),
        ],
    )


def _draft(call: Call, folder: Path, places: tuple[str, ...], dbt: Path | None) -> None:
    from lakewright.cli.render.draft import dbt_page, draft_page
    from lakewright.usecases.draft_from_dbt import draft_from_dbt
    from lakewright.usecases.draft_project import draft_project

    source = click.get_current_context().get_parameter_source("template")
    is_template = source is not None and source.name == "COMMANDLINE"
    if is_template or (places and dbt is not None):
        raise UsageError("--template, --from and --from-dbt exclude each other", remedy="Give one of them.")
    if dbt is not None:
        made = draft_from_dbt(dbt, folder)
        call.output.result(made.as_json(), dbt_page(made, folder))
        return
    draft = draft_project(places, folder, call.environ)
    call.output.result(draft.as_json(), draft_page(draft, folder))


@command
@click.argument(
    "folder", metavar="[DIR]", required=False, default="lakewright-demo", type=click.Path(path_type=Path)
)
@click.option("--no-run", is_flag=True, help="Only write the project.")
def demo(call: Call, /, folder: Path, *, no_run: bool) -> int:
    """Write a project with airport data into DIR (by default lakewright-demo) and apply four months of it.

    Changes made there are never overwritten.

    Examples:
        lakewright demo
        lakewright demo /tmp/lake
    """
    from lakewright.usecases.declarations import packaged, write_project
    from lakewright.usecases.due.take import plan_of_project

    begin = call.clock()
    count = write_project(packaged("demo", "project"), folder)
    if count:
        call.output.note(f"{counted(count, 'file')} written to {folder}; see {folder}/README.md.")
    call.work_on(folder)
    written = {"folder": str(folder.resolve()), "files_written": count}
    typed = Command("apply", "--project", str(folder))
    if no_run:
        call.output.result({**written, "outcome": None}, [line(Phrase("Run it with ", typed))])
        return 0
    plan = plan_of_project(call.app)
    if plan.steps:
        call.output.note(Phrase("Running ", typed))
        return take_steps(call, document=written, advice=_next(folder))
    head = f"Nothing is due; that took {took(begin, call.clock())}."
    document = {**written, "outcome": {"left": plan_document(plan)}}
    call.output.result(document, [line(Span(head, "green")), *_next(folder)])
    return 0


def _next(folder: Path) -> Iterator[Block]:
    at = f"--project {shlex.quote(str(folder))}"
    yield line("")
    yield line(Span("What to look at next", "bold"))
    for what, typed in (
        ("every version of one airport's frequencies", f'sql {at} "{HISTORY}"'),
        ("what the manifest knows of one slice", f"manifest show frequencies/2022-02-01.csv.gz {at}"),
        ("what ran", f"history {at}"),
        ("a file that somebody corrected: change one in data, then ask", f"plan {at}"),
    ):
        yield line(Span(f"  {what}", "dim"))
        yield whole(f"{_program()} {typed}")


def _program() -> str:
    """Return the command that starts the tool here: its path, if the shell would not find it by name."""
    if shutil.which("lakewright") is not None or Path(sys.argv[0]).name != "lakewright":
        return "lakewright"
    return shlex.quote(os.path.relpath(sys.argv[0]))


HISTORY = (
    "SELECT type, description, frequency_mhz, dlf_ValidFrom, dlf_ValidTo, dlf_deleted "
    "FROM frequencies.history WHERE airport_ident = 'EHAM' ORDER BY id, dlf_ValidFrom"
)
