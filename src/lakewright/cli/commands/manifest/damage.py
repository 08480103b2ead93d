"""`lakewright manifest fsck`: what is damaged, and what would repair it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from lakewright.cli.call import Call
from lakewright.cli.commands.manifest.lookup import inventory_of
from lakewright.cli.commands.manifest.verbs import author_option
from lakewright.cli.group import command
from lakewright.cli.render.items import damage_page, repair_page

if TYPE_CHECKING:
    from lakewright.manifest.store import Damage

__all__ = ["check"]


@command(
    name="fsck",
    examples=[
        "lakewright manifest fsck",
        "lakewright manifest fsck --repair",
        "lakewright manifest fsck --repair --yes",
    ],
)
@click.option("--repair", is_flag=True, help="Tell what would repair it; nothing is written without --yes.")
@click.option("--yes", is_flag=True, help="With --repair: do it, then check again.")
@author_option("Who repairs it.")
@click.pass_obj
def check(call: Call, /, *, repair: bool, yes: bool, author: str) -> int:
    """Check every record, what is answered from them, leases and watermarks, and the tables' commits.

    Exits with 1 where something is damaged. Records are never changed: an item with an illegal one gets a new
    revision. Nobody should be writing meanwhile.
    """
    from lakewright.slices.audit import audit, repairs

    entities = [entity for entity in call.app.project.entities.values() if entity.enabled]
    inventory = inventory_of(call, author)
    damages = list(audit(inventory, entities))
    proposals = list(repairs(inventory, damages)) if repair and damages else []
    left = damages
    if yes and proposals:
        for proposal in proposals:
            proposal.apply()
        left = list(audit(inventory, entities))
    document = {
        "damaged": _told(left),
        **({"repairs": [{"item_id": one.item_id, "does": one.does} for one in proposals]} if repair else {}),
        **({"repaired": len(damages) - len(left)} if yes else {}),
    }
    page = [*damage_page(damages), *repair_page(proposals, is_done=yes)]
    call.output.result(document, [*page, *damage_page(left)] if yes and proposals else page)
    return 1 if left else 0


def _told(damages: Sequence[Damage]) -> list[dict[str, Any]]:
    return [
        {"item_id": damage.item_id, "record_id": damage.record_id, "problem": damage.problem}
        for damage in damages
    ]
