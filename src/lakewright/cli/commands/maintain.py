"""`lakewright maintain`: compact small files, and rewrite files with many deleted rows."""

from __future__ import annotations

from collections.abc import Mapping

import click

from lakewright.cli.call import Call
from lakewright.cli.completion import names_of
from lakewright.cli.group import command
from lakewright.cli.options import despite_faults
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
@click.argument("entities", metavar="[ENTITY]...", nargs=-1, shell_complete=names_of("entities"))
@click.option("--dry-run", is_flag=True, help="Only show what would be done.")
@despite_faults
@click.pass_obj
def maintain(call: Call, /, entities: tuple[str, ...], *, dry_run: bool) -> int:
    """Compact the silver tables of ENTITY, or of all entities, if their `maintenance` settings ask for it.

    Rows do not change, and slices may be processed at the same time. Runs also maintain tables after
    processing slices.
    """
    from lakewright.usecases.maintain_tables import maintain_table

    project = call.app.project
    found = {}
    for name in entities or tuple(project.entities):
        with working(call.output, f"maintaining {name}"):
            found[project.entity(name).name] = maintain_table(call.app, name, is_dry=dry_run)
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
