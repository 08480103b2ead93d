"""`lakewright manifest fsck`: check the manifest and repair it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click

from lakewright.cli.call import Call
from lakewright.cli.commands.manifest.operate import author_option
from lakewright.cli.group import command
from lakewright.cli.page import Block, Span, line
from lakewright.cli.render.items import damage_page, repair_page
from lakewright.errors.phrase import Command, Phrase

if TYPE_CHECKING:
    from lakewright.manifest.store import Damage
    from lakewright.usecases.operate_items import ManifestCheck

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
    """Check all records, the verdicts derived from them, leases and watermarks.

    Exits with 1 if something is damaged. Records are never changed: an item with an illegal record gets a new
    revision. Nothing else should write to the manifest during the check. Where the manifest and a table
    disagree is part of `lakewright plan`.
    """
    from lakewright.usecases.operate_items import check_manifest

    checked = check_manifest(call.app, repairs_it=repair and yes, author=author)
    document: dict[str, Any] = {"damaged": _documents(checked.left)}
    if repair:
        document["repairs"] = [{"item_id": one.item_id, "does": one.does} for one in checked.repairs]
    if yes:
        document["repaired"] = len(checked.found) - len(checked.left)
    call.output.result(document, _page(checked, is_shown=repair))
    return 1 if checked.left else 0


def _page(checked: ManifestCheck, *, is_shown: bool) -> Iterator[Block]:
    """Yield the damage and what repairs it; of planned repairs only that there are some, unless shown."""
    yield from damage_page(checked.found)
    if checked.found and not checked.repairs:
        what = "this fault" if len(checked.found) == 1 else "any of these faults"
        yield line(Span("do: ", "dim"), f"what is said above; --repair can't mend {what}.")
    elif checked.found and not is_shown:
        yield line(
            Span("do: ", "dim"), Phrase(Command("manifest", "fsck", "--repair"), " shows what it can mend.")
        )
    elif is_shown:
        yield from repair_page(checked.repairs, is_done=checked.is_repaired)
    if checked.is_repaired:
        yield from damage_page(checked.left)


def _documents(damages: Sequence[Damage]) -> list[dict[str, Any]]:
    return [
        {"item_id": damage.item_id, "record_id": damage.record_id, "problem": damage.problem}
        for damage in damages
    ]
