"""`lakewright maintain`: small files brought together, and rows cleared out that are marked as replaced."""

from __future__ import annotations

from collections.abc import Mapping

import click

from lakewright.cli.call import Call
from lakewright.cli.group import command
from lakewright.cli.page import Branch, Span, line
from lakewright.cli.progress import working
from lakewright.cli.render.run import maintenance_line
from lakewright.cli.render.words import counted
from lakewright.targets.entity.maintenance import Maintenance

__all__ = ["maintain"]


@command(
    examples=[
        "lakewright maintain",
        "lakewright maintain regions --dry-run",
    ],
)
@click.argument("entities", metavar="[ENTITY]...", nargs=-1)
@click.option("--dry-run", is_flag=True, help="Only say what is to be done.")
@click.pass_obj
def maintain(call: Call, /, entities: tuple[str, ...], *, dry_run: bool) -> int:
    """Compact the silver tables of ENTITY, or of all, where their `maintenance` settings say it pays.

    Rows stay as they are, and slices may be processed meanwhile. Runs do the same after slices.
    """
    app = call.app
    names = entities or tuple(app.project.entities)
    found = {}
    for name in names:
        with working(call.output, f"maintaining {name}"):
            found[app.project.entity(name).name] = app.maintain(name, is_dry=dry_run)
    call.output.result(
        {name: upkeep.as_json() for name, upkeep in found.items()},
        [_branch(name, upkeep) for name, upkeep in found.items()],
    )
    call.output.last(_last(found))
    return 0


def _branch(name: str, upkeep: Maintenance) -> Branch:
    shape = upkeep.shape
    if shape is None:
        return Branch(line(Span(name, "bold"), " has no table yet"))
    size = f" {counted(shape.files, 'file')}, {shape.size / 1e6:,.1f} MB"
    return Branch(line(Span(name, "bold"), Span(size, "dim")), (Branch(maintenance_line(upkeep.as_json())),))


def _last(found: Mapping[str, Maintenance]) -> str:
    done = sum(upkeep.is_done for upkeep in found.values())
    waiting = sum(bool(upkeep.reasons) and not upkeep.is_done for upkeep in found.values())
    return f"Done. COMPACTED={done} WAITING={waiting} FINE={len(found) - done - waiting}"
