"""`lakewright init`: write a small project to start from."""

from __future__ import annotations

from pathlib import Path

import click

from lakewright.cli.call import Call
from lakewright.cli.group import command
from lakewright.cli.page import Span, line
from lakewright.cli.render.words import counted
from lakewright.errors.phrase import Command, Phrase

__all__ = ["TEMPLATES", "init"]

TEMPLATES = {
    "minimal": (
        ("job", "daily", "verify"),
        "Then put a second file beside lake/bronze/people/2022-01-01.csv and run it again.",
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


@command(examples=["lakewright init", "lakewright init lake", "lakewright init sales --template full"])
@click.argument("folder", metavar="[DIR]", required=False, default=".", type=click.Path(path_type=Path))
@click.option(
    "--template",
    type=click.Choice(list(TEMPLATES)),
    default="minimal",
    show_default=True,
    help="minimal: one CSV file, one entity; entities: one for each strategy; full: files, joins, a Delta "
    "table, checks, measures, documentation and tests.",
)
@click.pass_obj
def init(call: Call, /, folder: Path, *, template: str) -> None:
    """Write a small project into DIR, by default the current folder.

    The project is ready to run, and comments explain it.
    """
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
