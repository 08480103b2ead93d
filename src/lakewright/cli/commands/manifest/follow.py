"""`lakewright manifest watch`: records as they come."""

from __future__ import annotations

import json
import time

import click

from lakewright.cli.call import Call
from lakewright.cli.group import command
from lakewright.cli.items import application_named, entity_application
from lakewright.cli.render.items import record_line
from lakewright.cli.signals import Stopper, listening
from lakewright.manifest.record import Record, State

__all__ = ["watch"]

BREATH = 0.1
"""Seconds between two looks at whether to stop."""

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
@click.option("--entity", metavar="NAME", help="Only slices of this entity.")
@click.option(
    "--every",
    type=click.FloatRange(min=0.1),
    default=1.0,
    show_default=True,
    metavar="SECONDS",
    help="How often to look.",
)
@click.pass_obj
def watch(
    call: Call, /, *, states: tuple[str, ...], application: str | None, entity: str | None, every: float
) -> None:
    """Print records as they are added, until Ctrl-C; under `-o json` each is a line of JSON."""
    from lakewright.manifest.watch import Watch

    wanted = {State(state.upper()) for state in states}
    only = application_named(application) if application else None
    if entity is not None:
        only = entity_application(call.app, entity)
    watched = Watch(call.app.store, only)
    with listening(lambda _: None) as stopper:
        call.output.note("Watching the manifest; Ctrl-C ends it.")
        while stopper.signal is None:
            for record in watched.news():
                if not wanted or record.state in wanted:
                    _tell(call, record)
            _pause(stopper, every)


def _pause(stopper: Stopper, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while stopper.signal is None and time.monotonic() < deadline:
        time.sleep(BREATH)


def _tell(call: Call, record: Record) -> None:
    if call.output.is_json:
        text = json.dumps(call.output.redacted(record.as_json()), ensure_ascii=False, default=str)
        call.output.out.write(f"{text}\n")
        call.output.out.flush()
    else:
        call.output.page([record_line(record)])
