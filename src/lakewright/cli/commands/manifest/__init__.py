"""`lakewright manifest`: the operator's command post over slices, their states and their locks."""

from __future__ import annotations

import click

from lakewright.cli.group import LazyGroup

__all__ = ["manifest"]

_HERE = "lakewright.cli.commands.manifest"


@click.group(
    cls=LazyGroup,
    short_help="See and change what is known of slices.",
    lazy={
        "ls": f"{_HERE}.look:list_items",
        "show": f"{_HERE}.look:show_item",
        "stats": f"{_HERE}.look:stats",
        "discover": f"{_HERE}.look:discover_slices",
        "resolve": f"{_HERE}.verbs:resolve",
        "release": f"{_HERE}.verbs:release",
        "skip": f"{_HERE}.verbs:skip",
        "unskip": f"{_HERE}.verbs:unskip",
        "requeue": f"{_HERE}.verbs:requeue",
        "export": f"{_HERE}.records:export",
        "import": f"{_HERE}.records:import_file",
        "fsck": f"{_HERE}.records:check",
    },
    examples=["lakewright manifest ls --state failed", "lakewright manifest stats"],
)
def manifest() -> None:
    """See and change what the manifest knows of slices: what is done, waits, failed or is locked."""
