"""The lines of an exported manifest: NDJSON with one record or document each.

Source: `processing-manifest.md`, "Record". Records have Snowplow's form; its records of eight keys are read
    too.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from lakewright.errors import Fault, LakewrightError, Location
from lakewright.errors.phrase import Command, Phrase
from lakewright.manifest.commit_counter import COUNTER
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
from lakewright.manifest.record import Record
from lakewright.manifest.store import Document, DocumentKey
from lakewright.manifest.watermarks import CHANGE, WATERMARK, StoredWatermark, WatermarkChange

KINDS = (WATERMARK, CHANGE, COUNTER, RUN, RUN_KEY, RUN_TARGET, TAINT, BUILT, BUILD, CHECK, WANT, DECISION)
"""The kinds of documents that are exported, in this order; leases are not: they apply to this store only."""


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


def parse_lines(lines: Iterable[str], source: str, faults: list[Fault]) -> Iterator[Line]:
    """Yield the readable lines; the faults of others are appended to `faults`."""
    for number, text in enumerate(lines, 1):
        if not text.strip():
            continue
        location = Location(source, number)
        try:
            yield _line(json.loads(text), location)
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


def _line(content: Mapping[str, Any], location: Location) -> Line:
    if "document" not in content:
        return RecordLine(Record.from_json(content), location)
    kind, key, value = (content["document"][name] for name in ("kind", "key", "value"))
    if kind not in KINDS or not isinstance(key, str) or not isinstance(value, Mapping):
        raise ValueError(f"a document of the kind {kind!r} can't be imported in this form")
    document = Document(kind, key, _ended(value) if kind == RUN else value, 0)
    if kind in _KEYS and _KEYS[kind](document) != key:
        raise ValueError(f"its key does not belong to this {kind}")
    return DocumentLine(document, location)


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


_KEYS: Mapping[str, Callable[[Document], str]] = {
    WATERMARK: lambda document: StoredWatermark.from_document(document).key,
    CHANGE: _change_key,
    COUNTER: _counter_key,
    RUN: lambda document: Run.from_json(document.value).key,
    RUN_KEY: lambda document: document.key if str(document.value["key"]) else "",
    TAINT: _taint_key,
    BUILD: _build_key,
}
"""For each kind, a function that reads a document and returns the key that it must have."""
