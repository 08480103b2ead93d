"""The bus over HTTP: the verbs of `lakewright manifest` for programs that are no part of the project."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import islice
from typing import Any

from lakewright.bus import claims
from lakewright.bus.additions import id_of
from lakewright.bus.claims import WrittenClaim
from lakewright.bus.manifest import Manifest
from lakewright.bus.names import own_application
from lakewright.manifest.record import Application
from lakewright.manifest.settings import lease_duration
from lakewright.serve.http.endpoint import ApiCall, Endpoint, Part, listed, required, text, whole_number
from lakewright.usecases.items import find_item

__all__ = ["BUS"]


def _add(call: ApiCall) -> list[dict[str, Any]]:
    body, manifest = call.body, Manifest.of(call.app)
    new = set(manifest.add(*body["items"], application=body["application"], payload=body.get("payload")))
    return [{"item_id": each, "is_new": each in new} for each in dict.fromkeys(map(id_of, body["items"]))]


def _ready(call: ApiCall) -> list[dict[str, Any]]:
    items = Manifest.of(call.app).ready(
        str(call.given("application")),
        call.all_given("after"),
        match=call.given("match"),
        limit=call.limit(),
    )
    return [{"item_id": item.item_id, "revision": item.revision, "arrival": item.arrival} for item in items]


def _acquire(call: ApiCall) -> dict[str, Any]:
    body, manifest = call.body, Manifest.of(call.app)
    demand = manifest.demand(
        own_application(body["application"]),
        body.get("after", ()),
        is_idempotent=bool(body.get("idempotent")),
    )
    lease = body.get("lease")
    duration = manifest.lease if lease is None else lease_duration({"lease": lease})
    item = find_item(call.app, body["item"])
    return claims.acquire(manifest, demand, item.item_id, duration).as_json()


def _with_claim(call: ApiCall, act: Callable[[Manifest, WrittenClaim], Any]) -> tuple[WrittenClaim, Any]:
    claim = WrittenClaim.parse(json.dumps(call.body["claim"]))
    return claim, act(Manifest.of(call.app), claim)


def _renew(call: ApiCall) -> dict[str, Any]:
    _, renewed = _with_claim(call, claims.renew_claim)
    found: dict[str, Any] = renewed.as_json()
    return found


def _processed(call: ApiCall) -> dict[str, Any]:
    payload = call.body.get("payload")
    return _ended(call, lambda manifest, claim: claims.finish(manifest, claim, payload))


def _failed(call: ApiCall) -> dict[str, Any]:
    message = str(call.body.get("message") or "no reason was given")
    return _ended(call, lambda manifest, claim: claims.fail(manifest, claim, message))


def _ended(call: ApiCall, act: Callable[[Manifest, WrittenClaim], Any]) -> dict[str, Any]:
    claim, item = _with_claim(call, act)
    application = Application.named(claim.application, claim.instance)
    return {
        "item_id": item.item_id,
        "application": str(application),
        "verdict": item.verdict(application).value,
    }


def _state(call: ApiCall) -> list[dict[str, Any]]:
    found = Manifest.of(call.app).state(str(call.given("application")))
    first = int(call.given("offset") or 0)
    return [each.as_json() for each in islice(found, first, first + call.limit())]


_AS = required("application", "The application: name, or name:instance.")
_AFTER = listed("after", "An application that must have processed an item first; may be repeated.")
_CLAIM = Part("claim", {"type": "object"}, "What `/bus/acquire` returned.", is_required=True)
_PAYLOAD = Part("payload", {"type": "object"}, "A JSON object to record.")
_LIMIT = whole_number("limit", "The largest number of rows; 100 by default.")


def _post(path: str, summary: str, handle: Any, *body: Part, form: str | None = None) -> Endpoint:
    return Endpoint(
        method="POST",
        path=path,
        summary=summary,
        tag="bus",
        handle=handle,
        body=body,
        form=form,
        changes=True,
    )


BUS = (
    _post(
        "/bus/add",
        "Record items as NEW; known ones are left unchanged.",
        _add,
        listed("items", "Ids of items.", is_required=True),
        _AS,
        _PAYLOAD,
    ),
    Endpoint(
        method="GET",
        path="/bus/ready",
        summary="The items that an application may process now, in the order of their arrival.",
        tag="bus",
        handle=_ready,
        query=(_AS, _AFTER, text("match", "Only ids that match; *, ? and [...] are wildcards."), _LIMIT),
    ),
    _post(
        "/bus/acquire",
        "Lock an item; the answer is the claim.",
        _acquire,
        required("item", "The id of the item."),
        _AS,
        _AFTER,
        text("lease", "How long the lock lasts without `renew`: 60s, 10m."),
        Part("idempotent", {"type": "boolean"}, "Take over a stale lock: repeating the work does no harm."),
    ),
    _post("/bus/renew", "Let a claim last as long again from now.", _renew, _CLAIM),
    _post(
        "/bus/processed",
        "End a claim: its item is processed.",
        _processed,
        _CLAIM,
        _PAYLOAD,
        form="lakewright/manifest-processed/1",
    ),
    _post(
        "/bus/failed",
        "End a claim: its item has failed and waits for an operator.",
        _failed,
        _CLAIM,
        text("message", "Why; it is recorded."),
        form="lakewright/manifest-failed/1",
    ),
    Endpoint(
        method="GET",
        path="/bus/state",
        summary="What an application recorded of the items that it has processed, in order of arrival.",
        tag="bus",
        handle=_state,
        query=(_AS, whole_number("offset", "Rows to leave out at the beginning."), _LIMIT),
    ),
)
