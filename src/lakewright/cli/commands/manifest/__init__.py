"""`lakewright manifest`: list and operate the items of the manifest."""

from __future__ import annotations

import click

from lakewright.cli.group import LazyGroup

__all__ = ["manifest"]

_HERE = "lakewright.cli.commands.manifest"


@click.group(
    cls=LazyGroup,
    lazy={
        "ls": (f"{_HERE}.items:list_items", "List items with their verdicts."),
        "show": (f"{_HERE}.items:show_item", "Show every record of one item."),
        "stats": (f"{_HERE}.items:stats", "Count items by application and verdict."),
        "discover": (
            f"{_HERE}.items:discover",
            "Record new slices; compare bronze and silver with the manifest.",
        ),
        "add": (f"{_HERE}.bus:add", "Record items of any program as NEW."),
        "run": (f"{_HERE}.bus:run", "Run a command for each ready item, under a lock."),
        "acquire": (f"{_HERE}.bus:acquire", "Lock an item across processes."),
        "renew": (f"{_HERE}.bus:renew", "Renew such a lock."),
        "processed": (f"{_HERE}.bus:processed", "End such a lock: the item is processed."),
        "failed": (f"{_HERE}.bus:failed", "End such a lock: the item has failed."),
        "state": (f"{_HERE}.bus:state", "Print what an application has recorded."),
        "resolve": (f"{_HERE}.operate:resolve", "Let a failed item be processed again."),
        "release": (f"{_HERE}.operate:release", "Remove the lock of an item."),
        "skip": (f"{_HERE}.operate:skip", "Skip an item."),
        "unskip": (f"{_HERE}.operate:unskip", "Undo a skip."),
        "requeue": (f"{_HERE}.operate:requeue", "Process an item again."),
        "accept": (f"{_HERE}.operate:accept", "Accept a changed slice without processing it again."),
        "export": (f"{_HERE}.operate:export", "Write every record as a line of JSON."),
        "import": (f"{_HERE}.operate:import_file", "Import exported records."),
        "move": (f"{_HERE}.operate:move", "Follow a lake that was moved or copied."),
        "fsck": (f"{_HERE}.items:fsck", "Check the manifest, and compare it with the tables."),
        "watch": (f"{_HERE}.items:watch", "Print records as they are added."),
    },
)
def manifest() -> None:
    """Show and change the manifest's records of slices: processed, waiting, failed or locked.

    Examples:
        lakewright manifest ls --state failed
        lakewright manifest stats
    """
