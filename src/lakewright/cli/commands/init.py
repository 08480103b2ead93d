"""`lakewright init`: a small project that runs, to start one's own from."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from lakewright.cli.call import Call
from lakewright.cli.folder import packaged, write_project
from lakewright.cli.group import command
from lakewright.cli.page import Span, line

__all__ = ["init"]


@command(examples=["lakewright init", "lakewright init lake"])
@click.argument("folder", metavar="[DIR]", required=False, default=".", type=click.Path(path_type=Path))
@click.pass_obj
def init(call: Call, /, folder: Path) -> None:
    """Write a small project into DIR (here, if not given): one CSV file, one entity, one job."""
    count = write_project(packaged("templates", "minimal"), folder)
    where = shlex.quote(str(folder))
    head = f"{count} files written into {folder}" if count else f"{folder} holds this project already"
    call.output.result(
        {"folder": str(folder.resolve()), "files": count},
        [
            line(head),
            line("Run it:  ", Span(f"lakewright job daily verify --project {where}", "bold")),
            line("Then put a second file beside lake/bronze/people/2022-01-01.csv and run it again."),
        ],
    )
