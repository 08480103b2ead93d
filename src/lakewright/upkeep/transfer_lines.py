"""The lines of an exported manifest: NDJSON with one record or document each.

Secrets in imported lines are removed as from those written here.

Source: `processing-manifest.md`, "Record". Records have Snowplow's form; its records of eight keys are read
    too. Keeping secrets out is Lakewright's addition.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from lakewright.errors import Fault, LakewrightError, Location
from lakewright.errors.phrase import Command, Phrase
from lakewright.manifest.claim import COUNTER
from lakewright.manifest.journal import (
    ABORTED,
    BUILD,
    BUILT,
    CHECK,
    DECISION,
    RUN,
    RUN_KEY,
    RUN_TARGET,
    RUNNING,
    TAINT,
    WANT,
    Run,
)
from lakewright.manifest.payload import KEPT_WHOLE
from lakewright.manifest.record import Record
from lakewright.manifest.redaction import Redactor
from lakewright.manifest.store import Document, DocumentKey
from lakewright.manifest.watermarks import CHANGE, WATERMARK, StoredWatermark, WatermarkChange


def record_text(record: Record) -> str:
    """Return the line of a record."""
    return json.dumps(record.as_json(), ensure_ascii=False)


def document_text(document: Document) -> str:
    """Return the line of a document."""
    content = {"kind": document.kind, "key": document.key, "value": document.value}
    return json.dumps({"document": content}, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class RecordLine:
    """A line that holds a record."""

    record: Record
    location: Location

    @property
    def subject(self) -> str:
        """The item of the record."""
        return self.record.item_id


@dataclass(frozen=True, slots=True)
class DocumentLine:
    """A line that holds a document."""

    document: Document
    location: Location

    @property
    def subject(self) -> DocumentKey:
        """The kind and key of the document."""
        return (self.document.kind, self.document.key)


Line = RecordLine | DocumentLine
"""A line of an export."""


def parse_lines(lines: Iterable[str], source: str, redactor: Redactor, faults: list[Fault]) -> Iterator[Line]:
    """Yield the readable lines, without secrets; the faults of others are appended to `faults`.

    Keys, states, ids, times and what later runs read are kept.
    """
    for number, text in enumerate(lines, 1):
        if not text.strip():
            continue
        location = Location(source, number)
        try:
            yield _line(json.loads(text), location, redactor)
        except KeyError as missing:
            faults.append(Fault(f"the line has no {missing.args[0]!r}", location))
        except (
            ArithmeticError,
            AttributeError,
            LakewrightError,
            TypeError,
            ValueError,
            RecursionError,
        ) as error:
            faults.append(
                Fault(
                    f"this is neither a record nor a document of a manifest: {error}",
                    location,
                    remedy=Phrase("Import what ", Command("manifest", "export"), " wrote, in UTF-8."),
                )
            )


def _line(content: Mapping[str, Any], location: Location, redactor: Redactor) -> Line:
    if "document" not in content:
        record = Record.from_json(content)
        return RecordLine(replace(record, payload=_payload(record, redactor)), location)
    kind, key, value = (content["document"][name] for name in ("kind", "key", "value"))
    if kind not in KINDS or not isinstance(key, str) or not isinstance(value, Mapping):
        raise ValueError(f"a document of the kind {kind!r} can't be imported in this form")
    document = Document(kind, key, _ended(value) if kind == RUN else value, 0)
    if KINDS[kind].key_of(document) != key:
        raise ValueError(f"its key does not belong to this {kind}")
    return DocumentLine(replace(document, value=KINDS[kind].clean(document.value, redactor)), location)


def _ended(run: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a run; a running one becomes `ABORTED`, as its process cannot be checked elsewhere."""
    return {**run, "status": ABORTED} if run["status"] == RUNNING else run


def _counter_key(document: Document) -> str:
    last = document.value["last"]
    if type(last) is not int or last < 0:
        raise ValueError(f"a counter has the value {last!r}")
    return document.key


def _change_key(document: Document) -> str:
    WatermarkChange.from_document(document)
    return document.key


def _taint_key(document: Document) -> str:
    str(document.value["reason"])
    return document.key if document.key.startswith(f"{document.value['place']['project']}/") else ""


def _build_key(document: Document) -> str:
    return document.key if document.key.startswith(f"{document.value['project']}/") else ""


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


@dataclass(frozen=True, slots=True)
class _Kind:
    """A kind of documents that is exported.

    Attributes:
        key_of: Reads a document, and returns the key that it must have.
        clean: Returns a value without the secrets that it may hold.
    """

    key_of: Callable[[Document], str] = lambda document: document.key
    clean: Callable[[Mapping[str, Any], Redactor], Mapping[str, Any]] = lambda value, _: value


KINDS: Mapping[str, _Kind] = {
    WATERMARK: _Kind(lambda document: StoredWatermark.from_document(document).key, _reason),
    CHANGE: _Kind(_change_key, _reason),
    COUNTER: _Kind(_counter_key),
    RUN: _Kind(lambda document: Run.from_json(document.value).key, _run),
    RUN_KEY: _Kind(lambda document: document.key if str(document.value["key"]) else ""),
    RUN_TARGET: _Kind(clean=_result),
    TAINT: _Kind(_taint_key, _taint),
    BUILT: _Kind(),
    BUILD: _Kind(_build_key, _build),
    CHECK: _Kind(),
    WANT: _Kind(),
    DECISION: _Kind(),
}
"""The kinds of documents that are exported, in this order; leases are not: they apply to this store only."""
