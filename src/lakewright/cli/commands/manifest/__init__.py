"""`lakewright manifest`: the operator's command post over slices, their states and their locks."""

from __future__ import annotations

import click

from lakewright.cli.group import LazyGroup

__all__ = ["manifest"]

_HERE = "lakewright.cli.commands.manifest"


@click.group(
    cls=LazyGroup,
    lazy={
        "ls": (f"{_HERE}.look:list_items", "List items with their verdicts."),
        "show": (f"{_HERE}.look:show_item", "Show every record of one item."),
        "stats": (f"{_HERE}.look:stats", "Count items by application and verdict."),
        "discover": (
            f"{_HERE}.look:discover_slices",
            "Record new slices; tell where bronze and manifest disagree.",
        ),
        "resolve": (f"{_HERE}.verbs:resolve", "Let a failed item be processed again."),
        "release": (f"{_HERE}.verbs:release", "Free an item from a lock."),
        "skip": (f"{_HERE}.verbs:skip", "Have an item left alone."),
        "unskip": (f"{_HERE}.verbs:unskip", "Take a skip back."),
        "requeue": (f"{_HERE}.verbs:requeue", "Have an item processed anew."),
        "export": (f"{_HERE}.records:export", "Write every record as a line of JSON."),
        "import": (f"{_HERE}.records:import_file", "Take in records."),
        "move": (f"{_HERE}.place:move", "Follow a lake that was moved or copied."),
        "fsck": (f"{_HERE}.damage:check", "Check the manifest, also beside the tables."),
        "watch": (f"{_HERE}.follow:watch", "Print records as they are added."),
    },
    examples=["lakewright manifest ls --state failed", "lakewright manifest stats"],
)
def manifest() -> None:
    """See and change what the manifest knows of slices: what is done, waits, failed or is locked."""
