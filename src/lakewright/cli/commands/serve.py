"""`lakewright serve`: the resident server of a project."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import click

from lakewright.cli.call import Call
from lakewright.cli.group import group
from lakewright.cli.options import global_arguments
from lakewright.cli.page import Span, labelled, line
from lakewright.cli.progress import listening

if TYPE_CHECKING:
    from lakewright.app import App
    from lakewright.serve.server_files import ServerFiles
    from lakewright.serve.service import ServeOptions, Serving


STOPPING = "Stopping the server; a second signal stops at once."


@group
@click.option("--host", default="127.0.0.1", show_default=True, metavar="NAME", help="Address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8377,
    show_default=True,
    help="Port to listen on; 0 takes a free one and prints it.",
)
@click.option("--allow-actions", is_flag=True, help="Let the page and the API run, resolve and skip.")
@click.option("--allow-data", is_flag=True, help="Let the page show rows of tables.")
@click.option(
    "--behind-proxy",
    metavar="HEADER",
    help="Header in which a proxy names the user; needed for any --host but loopback.",
)
@click.option("--on-demand", "is_on_demand", is_flag=True, hidden=True)
@click.option("--detach", is_flag=True, help="Run in the background.")
def serve(call: Call, /, *, detach: bool, **options: Any) -> int:
    """Keep Spark warm for the commands of this user, run triggers, and show the operator's page.

    Examples:
        lakewright serve
        lakewright serve --detach --allow-actions
        lakewright serve status
        lakewright serve stop
    """
    from lakewright.serve.service import ServeOptions

    wanted = ServeOptions(**options)
    wanted.check()
    return _detach(call, wanted) if detach else _serve(call, wanted)


def _serve(call: Call, options: ServeOptions) -> int:
    from lakewright.serve.server import serve as run

    with listening(call.output.note, message=STOPPING) as stopper:
        run(_serving(call, options), lambda: stopper.signal is not None)
    return 0


def _detach(call: Call, options: ServeOptions) -> int:
    from lakewright.serve.server_files import start_in_background

    files = server_files(call)
    state = start_in_background(files, [*global_arguments(call.settings), "serve", *options.arguments()])
    call.output.note(
        line("server ", Span(f"{state['pid']}", "bold"), f" started; its output is in {files.log}")
    )
    return 0


def server_files(call: Call) -> ServerFiles:
    """Return the files of the server of the call's project."""
    from lakewright.serve.server_files import ServerFiles

    call.accept_faults()
    return ServerFiles(call.app.project.basedir)


def _serving(call: Call, options: ServeOptions) -> Serving:
    from lakewright.serve.service import Serving
    from lakewright.serve.watched_project import WatchedProject
    from lakewright.warm.requests import Requests

    files = server_files(call)

    def open_project(on_read: Callable[[Path], None]) -> App:
        # What no fault touches goes on; the page and the log show the rest.
        settings = replace(call.settings, despite_faults=True)
        return call.opener(settings, call.environ, call.output.say, on_read=on_read)

    return Serving(
        options=options,
        files=files,
        project=WatchedProject(open_project),
        requests=Requests(files.socket, call.environ, files.basedir, global_arguments(call.settings)),
        runner="lakewright.cli.warm:run",
        report=call.output.note,
    )


@serve.add("status")
def show_status(call: Call, /) -> int:
    """Show whether a server runs for the project.

    The exit code is 1 if none does.

    Examples:
        lakewright serve status
        lakewright serve status -o json
    """
    from lakewright.serve.server_files import new_link

    files = server_files(call)
    found = files.read_state()
    if found is not None and (link := new_link(files, found)) is not None:
        found = {**found, "open": link}
    shown = [labelled(name, str(value)) for name, value in (found or {}).items()]
    document = {"running": found is not None, **(found or {})}
    call.output.result(document, shown or [line("no server runs for this project")])
    return 1 if found is None else 0


@serve.add("stop")
@click.option(
    "--timeout",
    type=click.IntRange(min=1),
    default=60,
    show_default=True,
    help="Seconds to wait for its end.",
)
def stop(call: Call, /, *, timeout: int) -> None:
    """Stop the project's server.

    What it runs stops after the current commit.

    Examples:
        lakewright serve stop
    """
    from lakewright.serve.server_files import stop_server

    was_running = stop_server(server_files(call), timeout)
    text = "the server has stopped" if was_running else "no server runs for this project"
    call.output.result({"stopped": was_running}, [line(text)])


@serve.add("warm-up", hidden=True)
def warm_up(call: Call, /) -> None:
    """Start Spark and process slices of a project of its own, so that the first request finds it warm."""
    from lakewright.usecases.warm_up import warm_up as process_for_nobody

    logging.getLogger("lakewright").setLevel(logging.WARNING)  # these slices are nobody's
    with TemporaryDirectory(prefix="lakewright-warm-up-") as folder:
        process_for_nobody(call.app.lake.spark, Path(folder), call.app.environ)
