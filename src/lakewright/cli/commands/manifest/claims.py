"""`lakewright manifest acquire`, `renew`, `processed` and `failed`: a lock held across processes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from lakewright.cli.call import Call
from lakewright.cli.commands.manifest.bus import (
    after_option,
    as_option,
    opened,
    payload_option,
    read_text,
    warn_of_unknown,
)
from lakewright.cli.group import command
from lakewright.cli.page import line
from lakewright.cli.render.words import status

if TYPE_CHECKING:
    from lakewright.bus.claims import WrittenClaim
    from lakewright.manifest.item import Item

__all__ = ["acquire", "failed", "processed", "renew"]

CLAIM = "CLAIM"


@command(
    name="acquire",
    examples=["lakewright manifest acquire ITEM --as acme/loader --lease 10m > claim.json"],
)
@click.argument("item")
@as_option
@after_option
@click.option("--lease", metavar="TIME", help="How long the lock lasts without `renew`; default as declared.")
@click.option("--idempotent", is_flag=True, help="Take over a stale lock: repeating the work does no harm.")
@click.pass_obj
def acquire(
    call: Call,
    /,
    *,
    item: str,
    application: str,
    after: tuple[str, ...],
    lease: str | None,
    idempotent: bool,
) -> None:
    """Lock an item and print the claim as JSON, for `renew`, `processed` and `failed`."""
    from lakewright.bus import claims
    from lakewright.bus.names import own_application
    from lakewright.manifest.settings import lease_duration
    from lakewright.usecases.items import find_item

    with opened(call) as manifest:
        demand = manifest.demand(own_application(application), after, is_idempotent=idempotent)
        warn_of_unknown(call, manifest, demand)
        duration = manifest.lease if lease is None else lease_duration({"lease": lease})
        claim = claims.acquire(manifest, demand, find_item(call.app, item).item_id, duration)
    call.output.document(claim.as_json())


@command(name="renew", examples=["lakewright manifest renew @claim.json"])
@click.argument("claim", metavar=CLAIM)
@click.pass_obj
def renew(call: Call, /, *, claim: str) -> None:
    """Let a claim last as long again from now; CLAIM is JSON, @FILE, or @- for stdin."""
    from lakewright.bus import claims

    with opened(call) as manifest:
        renewed = claims.renew_claim(manifest, _claim(call, claim))
    call.output.document(renewed.as_json())


@command(
    name="processed",
    examples=["lakewright manifest processed @claim.json --payload '{\"rows\": 3}'"],
)
@click.argument("claim", metavar=CLAIM)
@payload_option
@click.pass_obj
def processed(call: Call, /, *, claim: str, payload: str | None) -> None:
    """End a claim: its item is processed. CLAIM is JSON, @FILE, or @- for stdin."""
    from lakewright.bus import claims
    from lakewright.manifest.foreign_payload import parse_payload

    written = _claim(call, claim)
    content = None if payload is None else parse_payload(read_text(call, payload))
    with opened(call) as manifest:
        _tell(call, written, claims.finish(manifest, written, content))


@command(name="failed", examples=["lakewright manifest failed @claim.json --message 'disk full'"])
@click.argument("claim", metavar=CLAIM)
@click.option("--message", metavar="TEXT", default="no reason was given", help="Why; kept in the record.")
@click.pass_obj
def failed(call: Call, /, *, claim: str, message: str) -> None:
    """End a claim: its item has failed and waits for an operator. CLAIM is JSON, @FILE, or @- for stdin."""
    from lakewright.bus import claims

    written = _claim(call, claim)
    with opened(call) as manifest:
        _tell(call, written, claims.fail(manifest, written, message))


def _claim(call: Call, text: str) -> WrittenClaim:
    from lakewright.bus.claims import WrittenClaim

    return WrittenClaim.parse(read_text(call, text))


def _tell(call: Call, claim: WrittenClaim, item: Item) -> None:
    from lakewright.manifest.record import Application

    application = Application.named(claim.application, claim.instance)
    verdict = item.verdict(application)
    document = {"item_id": item.item_id, "application": str(application), "verdict": verdict.value}
    call.output.result(document, [line(status(verdict.value), f" {item.item_id} for {application}")])
