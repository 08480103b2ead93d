"""The verbs of an operator: `resolve`, `release`, `skip`, `unskip`, `requeue`. Each adds a record."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeVar

import click

from lakewright.cli.call import Call
from lakewright.cli.commands.manifest.lookup import inventory_of, known_item, ledger_of, listing_of
from lakewright.cli.group import command
from lakewright.cli.items import application_named, project_applications
from lakewright.cli.page import line
from lakewright.cli.render.words import status
from lakewright.errors import UsageError
from lakewright.manifest.record import ANYONE

if TYPE_CHECKING:
    from lakewright.manifest.item import Item
    from lakewright.manifest.record import Application

__all__ = ["author_option", "operator", "release", "requeue", "resolve", "skip", "unskip"]

MOST_NAMED = 10

F = TypeVar("F", bound=Callable[..., Any])


def operator(function: F) -> F:
    """Return the command with the options by which an operator tells who and why."""
    for decorate in (
        author_option("Who did it."),
        click.option("--reason", metavar="TEXT", default="none given", help="Why; kept in the record."),
    ):
        function = decorate(function)
    return function


def author_option(help: str) -> Callable[[F], F]:
    """Return the option that tells in whose name something is done; nobody's isn't taken."""
    return click.option(
        "--author",
        metavar="NAME",
        default=_user,
        show_default="your user name",
        callback=_somebody,
        help=help,
    )


def _user() -> str:
    from lakewright.stores.process import user_name

    return user_name()


def _somebody(_context: click.Context, _option: click.Parameter, name: str) -> str:
    if not name.strip():
        raise click.BadParameter("it names nobody.")
    return name


@command(
    name="resolve",
    examples=["lakewright manifest resolve ITEM --reason 'file sent anew'"],
)
@click.argument("item")
@operator
@click.pass_obj
def resolve(call: Call, /, item: str, *, author: str, reason: str) -> None:
    """Let a failed item be processed again, with its slice as it now is."""
    known = known_item(call, item)
    now = inventory_of(call).fingerprint_now(known)
    _did(call, ledger_of(call, author).resolve(known.item_id, reason, fingerprint=now))


@command(
    name="release",
    examples=["lakewright manifest release ITEM", "lakewright manifest release ITEM --force"],
)
@click.argument("item")
@click.option("--force", is_flag=True, help="Also from a holder whose lease is alive.")
@operator
@click.pass_obj
def release(call: Call, /, item: str, *, force: bool, author: str, reason: str) -> None:
    """Free an item from a lock whose holder is gone."""
    _did(call, ledger_of(call, author).release(known_item(call, item).item_id, reason, is_forced=force))


@command(
    name="skip",
    examples=["lakewright manifest skip ITEM --reason 'sent twice'"],
)
@click.argument("item")
@click.option(
    "--for", "application", metavar="APP", help="Only for this application; without it, for every one."
)
@operator
@click.pass_obj
def skip(call: Call, /, item: str, *, application: str | None, author: str, reason: str) -> None:
    """Have an item left alone; what waited for it goes on."""
    known = known_item(call, item)
    whom = _for(call, known, application)
    _did(call, ledger_of(call, author).skip(known.item_id, reason, application=whom))


@command(name="unskip", examples=["lakewright manifest unskip ITEM"])
@click.argument("item")
@click.option("--for", "application", metavar="APP", help="Only for this application.")
@operator
@click.pass_obj
def unskip(call: Call, /, item: str, *, application: str | None, author: str, reason: str) -> None:
    """Take a skip back: the item is ready again, as a new revision."""
    known = known_item(call, item)
    whom = _for(call, known, application)
    _did(call, ledger_of(call, author).unskip(known.item_id, reason, application=whom))


@command(
    name="requeue",
    examples=[
        "lakewright manifest requeue ITEM --reason 'file was corrected'",
        "lakewright manifest requeue ITEM --cascade",
    ],
)
@click.argument("item")
@click.option("--cascade", is_flag=True, help="Later slices that are processed are processed anew after it.")
@click.option("--late", is_flag=True, help="It may be applied though later slices are processed.")
@operator
@click.pass_obj
def requeue(call: Call, /, item: str, *, cascade: bool, late: bool, author: str, reason: str) -> None:
    """Have an item processed anew, with its slice as it now is.

    What later slices made of the rows may then be in doubt: they are named.
    """
    if cascade and late:
        raise UsageError(
            "--cascade has later slices processed anew after this one, --late leaves them as they are",
            remedy="Give one of the two.",
        )
    known = known_item(call, item)
    inventory = inventory_of(call)
    entity, later = inventory.later_items(known)
    if later and not cascade and not late and entity is not None and entity.settings.late_slices == "refuse":
        named = ", ".join(later[:MOST_NAMED])
        raise UsageError(
            f"later slices of {entity.name} are processed, {len(later)} in all: {named}",
            remedy="Give --cascade to process them anew as well, or --late to apply this one after them.",
        )
    requeued = ledger_of(call, author).requeue(
        known.item_id,
        reason,
        names=inventory.names(known),
        fingerprint=inventory.fingerprint_now(known),
        allow_late=late,
        cascade=later if cascade else (),
    )
    if later:
        what = "processed anew after it" if cascade else "in doubt now"
        call.output.note(f"{what}: {', '.join(later[:MOST_NAMED])}")
    _did(call, requeued)


def _did(call: Call, item: Item) -> None:
    rows = list(listing_of(call).rows(item))
    call.output.result(
        [row.as_json() for row in rows],
        [line(status(row.verdict.value), f" {row.item.item_id} for {row.application}") for row in rows],
    )


def _for(call: Call, item: Item, application: str | None) -> Application:
    """Return whom a skip is for: everyone, or an application of the project or the item."""
    if application is None:
        return ANYONE
    return application_named(application, chain(project_applications(call.app), item.concerned))
