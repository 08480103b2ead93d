"""`lakewright manifest fsck`: check the manifest and repair it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from lakewright.cli.call import Call
from lakewright.cli.commands.manifest.operate import author_option
from lakewright.cli.group import command
from lakewright.cli.page import Span, line
from lakewright.cli.render.items import damage_page, repair_page

if TYPE_CHECKING:
    from lakewright.manifest.store import Damage

__all__ = ["fsck"]


@command(
    name="fsck",
    examples=[
        "lakewright manifest fsck",
        "lakewright manifest fsck --repair",
        "lakewright manifest fsck --repair --yes",
    ],
)
@click.option("--repair", is_flag=True, help="Show what would repair it; only --yes writes anything.")
@click.option("--yes", "-y", is_flag=True, help="With --repair: repair it, then check again.")
@author_option("Who repairs it.")
@click.pass_obj
def fsck(call: Call, /, *, repair: bool, yes: bool, author: str) -> int:
    """Check all records, the verdicts derived from them, leases and watermarks, and the tables' commits.

    Exits with 1 if something is damaged. Records are never changed: an item with an illegal record gets a new
    revision. Nothing else should write to the manifest during the check.
    """
    from lakewright.usecases.check_manifest import check_manifest

    checked = check_manifest(call.app, plans_repair=repair, repairs_it=yes, author=author)
    document: dict[str, Any] = {"damaged": _documents(checked.left)}
    if repair:
        document["repairs"] = [{"item_id": one.item_id, "does": one.does} for one in checked.repairs]
    if yes:
        document["repaired"] = len(checked.found) - len(checked.left)
    page = [*damage_page(checked.found), *repair_page(checked.repairs, is_done=checked.is_repaired)]
    if checked.found and not repair:
        page.append(line(Span("do: ", "dim"), "`lakewright manifest fsck --repair` shows what it can mend."))
    if checked.is_repaired:
        page += damage_page(checked.left)
    call.output.result(document, page)
    return 1 if checked.left else 0


def _documents(damages: Sequence[Damage]) -> list[dict[str, Any]]:
    return [
        {"item_id": damage.item_id, "record_id": damage.record_id, "problem": damage.problem}
        for damage in damages
    ]
