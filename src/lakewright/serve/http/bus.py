"""The bus over HTTP: the verbs of `lakewright manifest` for programs that are no part of the project."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Annotated, Any

from lakewright.bus import claims
from lakewright.bus.claims import WrittenClaim
from lakewright.bus.manifest import Manifest, ProcessedItem, id_of
from lakewright.bus.worklist import own_application
from lakewright.manifest.settings import lease_duration
from lakewright.serve.http.endpoint import (
    After,
    ApiCall,
    ApplicationName,
    Endpoints,
    ItemName,
    Limit,
    about,
)
from lakewright.usecases.items import find_item

BUS = Endpoints()

Claim = Annotated[dict[str, Any], about("What `/bus/acquire` returned.", min_length=1)]
Payload = Annotated[dict[str, Any] | None, about("A JSON object to record.")]


@BUS.post("/bus/add", "bus")
def _add(
    call: ApiCall,
    items: Annotated[Sequence[str], about("Ids of items.", min_length=1)],
    application: ApplicationName,
    *,
    payload: Payload = None,
) -> list[dict[str, Any]]:
    """Record items as NEW; known ones are left unchanged."""
    new = set(Manifest.of(call.app).add(*items, application=application, payload=payload))
    return [{"item_id": each, "is_new": each in new} for each in dict.fromkeys(map(id_of, items))]


@BUS.get("/bus/ready", "bus")
def _ready(
    call: ApiCall,
    application: ApplicationName,
    *,
    after: After = (),
    match: Annotated[str | None, about("Only ids that match; *, ? and [...] are wildcards.")] = None,
    limit: Limit = 100,
) -> list[dict[str, Any]]:
    """The items that an application may process now, in the order of their arrival."""
    items = Manifest.of(call.app).ready(application, tuple(after), match=match, limit=limit)
    return [{"item_id": item.item_id, "revision": item.revision, "arrival": item.arrival} for item in items]


@BUS.post("/bus/acquire", "bus")
def _acquire(
    call: ApiCall,
    item: ItemName,
    application: ApplicationName,
    *,
    after: After = (),
    lease: Annotated[str | None, about("How long the lock lasts without `renew`: 60s, 10m.")] = None,
    idempotent: Annotated[bool, about("Take over a stale lock: repeating the work does no harm.")] = False,
) -> WrittenClaim:
    """Lock an item; the answer is the claim."""
    manifest = Manifest.of(call.app)
    demand = manifest.demand(own_application(application), tuple(after), is_idempotent=idempotent)
    duration = manifest.lease if lease is None else lease_duration({"lease": lease})
    return claims.acquire(manifest, demand, find_item(call.app, item).item_id, duration)


@BUS.post("/bus/renew", "bus")
def _renew(call: ApiCall, claim: Claim) -> WrittenClaim:
    """Let a claim last as long again from now."""
    return claims.renew_claim(Manifest.of(call.app), WrittenClaim.read(claim))


@BUS.post("/bus/processed", "bus", form="lakewright/manifest-processed/1")
def _processed(call: ApiCall, claim: Claim, *, payload: Payload = None) -> dict[str, Any]:
    """End a claim: its item is processed."""
    written = WrittenClaim.read(claim)
    return written.ended_as_json(claims.finish(Manifest.of(call.app), written, payload))


@BUS.post("/bus/failed", "bus", form="lakewright/manifest-failed/1")
def _failed(
    call: ApiCall, claim: Claim, *, message: Annotated[str, about("Why; it is recorded.")] = ""
) -> dict[str, Any]:
    """End a claim: its item has failed and waits for an operator."""
    written = WrittenClaim.read(claim)
    said = message or "no reason was given"
    return written.ended_as_json(claims.fail(Manifest.of(call.app), written, said))


@BUS.get("/bus/state", "bus")
def _state(
    call: ApiCall,
    application: ApplicationName,
    *,
    offset: Annotated[int, about("Rows to leave out at the beginning.", ge=0, le=999_999)] = 0,
    limit: Limit = 100,
) -> list[ProcessedItem]:
    """What an application recorded of the items that it has processed, in order of arrival."""
    return list(islice(Manifest.of(call.app).state(application), offset, offset + limit))
