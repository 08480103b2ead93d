"""Secrets in records and documents that are imported: they are removed as from those written here.

Their keys, states, ids, times and what later runs read are kept.

Source: `processing-manifest.md`, "Record" (payloads). Keeping secrets out is Lakewright's addition.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from lakewright.manifest.journal import BUILD, RUN, RUN_TARGET, TAINT
from lakewright.manifest.payload import KEPT_WHOLE
from lakewright.manifest.record import Record
from lakewright.manifest.redaction import Redactor
from lakewright.manifest.transfer_lines import Line, RecordLine
from lakewright.manifest.watermarks import CHANGE, WATERMARK


def without_secrets(line: Line, redactor: Redactor) -> Line:
    """Return the line of an import without the secrets that the redactor knows."""
    if isinstance(line, RecordLine):
        return replace(line, record=replace(line.record, payload=_payload(line.record, redactor)))
    clean = _DOCUMENTS.get(line.document.kind)
    if clean is None:
        return line
    return replace(line, document=replace(line.document, value=clean(line.document.value, redactor)))


def _payload(record: Record, redactor: Redactor) -> Mapping[str, Any] | None:
    if record.payload is None:
        return None
    if not str(record.payload.get("schema")).startswith("lakewright/"):
        kept = {"schema": record.payload["schema"]} if "schema" in record.payload else {}
        return {**redactor.foreign(record.payload), **kept}
    data = record.payload.get("data")
    cleaned: dict[str, Any] = redactor.value(record.payload)
    if isinstance(data, Mapping):
        cleaned["data"] |= {name: value for name, value in data.items() if name in KEPT_WHOLE}
    return cleaned


def _run(value: Mapping[str, Any], redactor: Redactor) -> Mapping[str, Any]:
    return {
        **value,
        "parameters": redactor.entries(value["parameters"]),
        "facts": redactor.value(value["facts"]),
    }


def _result(value: Mapping[str, Any], redactor: Redactor) -> Mapping[str, Any]:
    instance = {"instance": redactor.entries(value["instance"])} if "instance" in value else {}
    return {**redactor.value(value), **instance}


def _taint(value: Mapping[str, Any], redactor: Redactor) -> Mapping[str, Any]:
    place = value["place"]
    return {**value, "place": {**place, "parameters": redactor.entries(place["parameters"])}}


def _build(value: Mapping[str, Any], redactor: Redactor) -> Mapping[str, Any]:
    return {**value, "parameters": redactor.entries(value["parameters"])}


def _reason(value: Mapping[str, Any], redactor: Redactor) -> Mapping[str, Any]:
    return {**value, "reason": redactor.value(value["reason"])} if "reason" in value else value


_DOCUMENTS: Mapping[str, Callable[[Mapping[str, Any], Redactor], Mapping[str, Any]]] = {
    CHANGE: _reason,
    RUN: _run,
    RUN_TARGET: _result,
    TAINT: _taint,
    BUILD: _build,
    WATERMARK: _reason,
}
"""For each kind of document that may hold a secret, a function that removes it."""
