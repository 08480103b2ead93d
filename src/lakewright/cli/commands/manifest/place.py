"""`lakewright manifest move`: the manifest follows a lake that was moved or copied."""

from __future__ import annotations

import click

from lakewright.cli.call import Call
from lakewright.cli.group import command
from lakewright.cli.page import Branch, line
from lakewright.cli.render.words import counted, status
from lakewright.errors import UsageError

__all__ = ["move"]


@command(
    name="move",
    examples=["lakewright manifest move file:///old/lake/bronze file:///new/lake/bronze"],
)
@click.argument("old")
@click.argument("new")
@click.pass_obj
def move(call: Call, /, old: str, new: str) -> int:
    """Have what is recorded of slices below OLD count for slices of the same names below NEW.

    For a lake that was moved or copied. What is recorded below OLD stays there.
    """
    from lakewright.manifest.relocate import relocate
    from lakewright.slices.discover import item_id

    source, goal = (item_id(place.rstrip("/")) for place in (old, new))
    if source == goal:
        raise UsageError(f"{source} is where it is", remedy="Name two places.")
    found = list(relocate(call.app.store, source, goal, call.app.ids))
    moved = [each for each in found if each.fault is None]
    faults = [each.fault for each in found if each.fault is not None]
    if not found:
        raise UsageError(
            f"the manifest knows no item below {source}", remedy="See them with `lakewright manifest ls`."
        )
    document = {"items": [each.new for each in moved], "errors": [fault.as_json() for fault in faults]}
    wrong = (Branch(line(status("FAILED"), f" {fault.message}")) for fault in faults)
    said = line(f"what is recorded of {counted(len(moved), 'item')} goes on below {goal}")
    call.output.result(document, [*wrong, said])
    return 1 if faults else 0
