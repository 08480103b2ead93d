"""`lakewright manifest resolve`, `release`, `skip`, `unskip` and `requeue`: each appends a record."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

from lakewright.cli.call import Call
from lakewright.cli.group import command
from lakewright.cli.page import line
from lakewright.cli.render.words import status

if TYPE_CHECKING:
    from lakewright.usecases.items import Row

__all__ = ["author_option", "operator_options", "release", "requeue", "resolve", "skip", "unskip"]

MOST_NAMED = 10

F = TypeVar("F", bound=Callable[..., Any])


def operator_options(function: F) -> F:
    """Add the options by which an operator says who they are and why they act."""
    for decorate in (
        author_option("Who did it."),
        click.option("--reason", metavar="TEXT", default="none given", help="Why; kept in the record."),
    ):
        function = decorate(function)
    return function


def author_option(help: str) -> Callable[[F], F]:
    """Return the option that names the author of a change; an empty name is refused."""
    return click.option(
        "--author",
        metavar="NAME",
        default=_user,
        show_default="your user name",
        callback=_check_author,
        help=help,
    )


def _user() -> str:
    from lakewright.stores.process import user_name

    return user_name()


def _check_author(_context: click.Context, _option: click.Parameter, name: str) -> str:
    if not name.strip():
        raise click.BadParameter("the name is empty.")
    return name


@command(
    name="resolve",
    examples=["lakewright manifest resolve ITEM --reason 'file sent again'"],
)
@click.argument("item")
@operator_options
@click.pass_obj
def resolve(call: Call, /, item: str, *, author: str, reason: str) -> None:
    """Make a failed item ready again, with the current content of its slice."""
    from lakewright.usecases.operate_items import resolve_item

    _print(call, resolve_item(call.app, item, author=author, reason=reason))


@command(
    name="release",
    examples=["lakewright manifest release ITEM", "lakewright manifest release ITEM --force"],
)
@click.argument("item")
@click.option("--force", is_flag=True, help="Remove the lock even if its holder is alive.")
@operator_options
@click.pass_obj
def release(call: Call, /, item: str, *, force: bool, author: str, reason: str) -> None:
    """Remove an item's lock if the holder has ended."""
    from lakewright.usecases.operate_items import release_item

    _print(call, release_item(call.app, item, is_forced=force, author=author, reason=reason))


@command(
    name="skip",
    examples=["lakewright manifest skip ITEM --reason 'sent twice'"],
)
@click.argument("item")
@click.option("--for", "application", metavar="APP", help="Only for this application; by default for all.")
@operator_options
@click.pass_obj
def skip(call: Call, /, item: str, *, application: str | None, author: str, reason: str) -> None:
    """Skip an item; items that waited for it continue."""
    from lakewright.usecases.operate_items import skip_item

    _print(call, skip_item(call.app, item, application=application, author=author, reason=reason))


@command(name="unskip", examples=["lakewright manifest unskip ITEM"])
@click.argument("item")
@click.option("--for", "application", metavar="APP", help="Only for this application.")
@operator_options
@click.pass_obj
def unskip(call: Call, /, item: str, *, application: str | None, author: str, reason: str) -> None:
    """Undo a skip: the item is ready again, as a new revision."""
    from lakewright.usecases.operate_items import unskip_item

    _print(call, unskip_item(call.app, item, application=application, author=author, reason=reason))


@command(
    name="requeue",
    examples=[
        "lakewright manifest requeue ITEM --reason 'file was corrected'",
        "lakewright manifest requeue ITEM --cascade",
    ],
)
@click.argument("item")
@click.option("--cascade", is_flag=True, help="Process later slices again as well, after this one.")
@click.option("--late", is_flag=True, help="Allow it to be applied although later slices are processed.")
@operator_options
@click.pass_obj
def requeue(call: Call, /, item: str, *, cascade: bool, late: bool, author: str, reason: str) -> None:
    """Requeue an item, so that it is processed again with the current content of its slice.

    Rows that later slices have written may then be in doubt; these slices are listed.
    """
    from lakewright.usecases.operate_items import requeue_item

    requeued = requeue_item(call.app, item, cascade=cascade, late=late, author=author, reason=reason)
    if requeued.later:
        what = "processed again after it" if cascade else "in doubt now"
        call.output.note(f"{what}: {', '.join(requeued.later[:MOST_NAMED])}")
    _print(call, requeued.rows)


def _print(call: Call, rows: Sequence[Row]) -> None:
    call.output.result(
        [row.as_json() for row in rows],
        [line(status(row.verdict.value), f" {row.item.item_id} for {row.application}") for row in rows],
    )
