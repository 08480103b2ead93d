"""`lakewright serve status` and `lakewright serve stop`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click

from lakewright.cli.call import Call
from lakewright.cli.commands.serve import server_files
from lakewright.cli.group import command
from lakewright.cli.page import Span, line

__all__ = ["status", "stop", "warm_up"]


@command(examples=["lakewright serve status", "lakewright serve status -o json"])
@click.pass_obj
def status(call: Call, /) -> int:
    """Show whether a server runs for the project, and a link to its page; the exit code is 1 if none does.

    The link opens the page once, within 15 minutes.
    """
    from lakewright.serve.link import new_link

    files = server_files(call)
    found = files.read_state()
    if found is not None and (link := new_link(files, found)) is not None:
        found = {**found, "open": link}
    blocks = [line("no server runs for this project")] if found is None else _blocks(found)
    call.output.result({"running": found is not None, **(found or {})}, blocks)
    return 1 if found is None else 0


def _blocks(state: Mapping[str, Any]) -> list[Any]:
    return [line(Span(f"{name}: ", "dim"), str(value)) for name, value in state.items()]


@command(examples=["lakewright serve stop"])
@click.option(
    "--timeout",
    type=click.IntRange(min=1),
    default=60,
    show_default=True,
    help="Seconds to wait for its end.",
)
@click.pass_obj
def stop(call: Call, /, *, timeout: int) -> None:
    """Stop the project's server, and wait until it has ended.

    What it runs stops after the current commit, as Ctrl-C would stop it.
    """
    from lakewright.serve.background import stop_server

    was_running = stop_server(server_files(call), timeout)
    text = "the server has stopped" if was_running else "no server runs for this project"
    call.output.result({"stopped": was_running}, [line(text)])


@command(hidden=True)
@click.pass_obj
def warm_up(call: Call, /) -> None:
    """Start Spark and do the usual work once, so that the first request finds it warm."""
    from lakewright.spark.warmup import do_usual_work

    with TemporaryDirectory(prefix="lakewright-warm-up-") as folder:
        do_usual_work(call.app.lake.spark, Path(folder))
