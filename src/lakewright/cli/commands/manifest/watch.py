"""`lakewright manifest watch`: print records as they are added."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any

import click

from lakewright.cli.call import Call
from lakewright.cli.completion import names_of
from lakewright.cli.group import command
from lakewright.cli.render.items import record_line, stale_lock_page
from lakewright.cli.signals import Stopper, listening
from lakewright.manifest.lock import Lock
from lakewright.manifest.record import Record, State
from lakewright.manifest.settings import is_taken_over

__all__ = ["watch"]

POLL = 0.1
"""Seconds between two checks whether to stop, so that Ctrl-C ends a long pause immediately."""

STATES = [state.value.lower() for state in State]


@command(
    name="watch",
    examples=[
        "lakewright manifest watch",
        "lakewright manifest watch --state failed --state resolved -o json",
    ],
)
@click.option(
    "--state",
    "states",
    multiple=True,
    type=click.Choice(STATES, case_sensitive=False),
    help="Only records of this state.",
)
@click.option("--application", metavar="NAME", help="Only for this application: name, or name:instance.")
@click.option(
    "--entity", metavar="NAME", shell_complete=names_of("entities"), help="Only slices of this entity."
)
@click.option(
    "--every",
    type=click.FloatRange(min=0.1),
    default=1.0,
    show_default=True,
    metavar="SECONDS",
    help="How often to read the manifest.",
)
@click.pass_obj
def watch(
    call: Call, /, *, states: tuple[str, ...], application: str | None, entity: str | None, every: float
) -> None:
    """Print records as they are added, until Ctrl-C; with `-o json` each is a line of JSON.

    A lock that becomes stale is reported once, if PROCESSING is among the states.
    """
    from lakewright.usecases.operate_items import ManifestWatch

    wanted = frozenset(State(state.upper()) for state in states) or frozenset(State)
    watched = ManifestWatch(call.app, wanted, application=application, entity=entity)
    with listening(lambda _: None) as stopper:
        call.output.note("Watching the manifest; Ctrl-C ends it.")
        while stopper.signal is None:
            for found in watched.news():
                _print(call, found)
            _pause(stopper, every)


def _pause(stopper: Stopper, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while stopper.signal is None and time.monotonic() < deadline:
        time.sleep(POLL)


def _print(call: Call, found: Record | Lock) -> None:
    if isinstance(found, Record):
        if call.output.is_json:
            _print_json(call, found.as_json())
        else:
            call.output.page([record_line(found)])
    elif call.output.is_json:
        _print_json(call, {"alert": "stale_lock", **found.as_json()})
    else:
        taken = is_taken_over(call.app.project.manifest)
        call.output.page(stale_lock_page(found, is_taken_over=taken))


def _print_json(call: Call, document: Mapping[str, Any]) -> None:
    text = json.dumps(call.output.redacted(document), ensure_ascii=False, default=str)
    call.output.out.write(f"{text}\n")
    call.output.out.flush()
