"""Rewinds: an undo or a rebuild of a table, announced in the manifest before its commit.

The announcement keeps runs from processing slices meanwhile. If the process dies, the next command or run
looks into the table's log: it records the rewind if its commit landed, and otherwise removes the
announcement.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any

from lakewright.errors import LeaseHeld
from lakewright.manifest.lease import Holder
from lakewright.manifest.plain_values import document_of, of_json
from lakewright.manifest.record import format_instant
from lakewright.manifest.store import Document, Put

REWIND = "rewind"
"""The kind of the documents that announce rewinds; the key is the table, as its counter of commits has it."""


@dataclass(frozen=True, slots=True)
class Rewind:
    """A rewind that has begun and is not recorded yet.

    Attributes:
        key: The table, by the key of its counter of commits.
        rewind_id: The identity of this rewind; its commit carries it too.
        words: What it does, such as `undo of 2024-05-03.csv of orders`.
        lease: Key of the lease on the table, which the rewind holds.
        since: When it began, by the store's clock.
        version: Version of the document.
    """

    key: str
    rewind_id: str
    words: str
    lease: str
    holder: Holder
    since: datetime
    version: int = 0

    @property
    def put(self) -> Put:
        """The put that announces it, if no other rewind of the table is announced."""
        value = document_of(self, "words", "lease", "holder", "since", id=self.rewind_id)
        return Put(REWIND, self.key, value, 0)

    @property
    def removal(self) -> Put:
        """The put that ends it, if nobody else has ended it."""
        return Put(REWIND, self.key, None, self.version)

    @classmethod
    def from_document(cls, document: Document) -> Rewind:
        """Return the rewind that a document announces."""
        value = {**document.value, "key": document.key, "version": document.version}
        return of_json(cls, {**value, "rewind_id": value["id"]})

    def error(self) -> LeaseHeld:
        """Return the error of a run that must wait for the rewind to end."""
        return LeaseHeld(
            f"the {self.words} by {self.holder} is not finished, since {format_instant(self.since)}",
            remedy="Wait for it to end. If its process has ended, the next run continues by itself.",
            details={"key": self.key, "holder": str(self.holder), "run_id": self.holder.run_id},
        )


@dataclass(frozen=True, slots=True)
class RewoundSlice:
    """A slice of which a rewind records a new revision.

    Attributes:
        item_id: The item.
        revision: The revision of it that the rewind concerns; a later one is left alone.
        note: What its NEW record keeps beside the reason, such as `fingerprint` and `processing_time`.
        is_skipped: Whether the entity skips it from now on.
        token: The number that its commit has now; None if it is not processed any more.
        content: Content of its PROCESSED record, if it has a token.
    """

    item_id: str
    revision: int
    note: Mapping[str, Any] = field(default_factory=dict)
    is_skipped: bool = False
    token: int | None = None
    content: Mapping[str, Any] = field(default_factory=dict)


def rewound_slices(documents: Sequence[Mapping[str, Any]]) -> tuple[RewoundSlice, ...]:
    """Return the slices that the content of a commit names; fields of later versions are ignored."""
    names = {each.name for each in fields(RewoundSlice)}
    return tuple(
        RewoundSlice(**{name: value for name, value in document.items() if name in names})
        for document in documents
    )
