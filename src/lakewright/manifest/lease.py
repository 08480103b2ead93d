"""Leases: who may write something just now, until when, and how others take over.

A lease is a document beside the records. Its times are the store's. A holder renews it at a third of its
duration; one that can't must stop before its commit.

Source: `processing-manifest.md`, "State" (Processing acquires a lock); leases are Lakewright's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any

from lakewright.manifest.record import format_instant, parse_instant
from lakewright.manifest.store import Document, Put

__all__ = ["LEASE", "Holder", "Lease"]

LEASE = "lease"
"""The kind of the documents that hold leases; the key is what is leased: an item id or a resource."""


@dataclass(frozen=True, slots=True)
class Holder:
    """A process that holds leases.

    Attributes:
        started: When the process started, as its operating system tells it: a process id that is in use
            again by another process isn't the holder.
    """

    host: str
    pid: int
    started: str
    run_id: str
    user: str = ""

    def __str__(self) -> str:
        return f"{self.user or 'process'}@{self.host} (process {self.pid}, run {self.run_id})"


@dataclass(frozen=True, slots=True)
class Lease:
    """One thing that one holder has until `expires`; `token` tells this holding from every other."""

    key: str
    holder: Holder
    token: str
    acquired: datetime
    expires: datetime
    version: int = 0

    def is_expired(self, now: datetime) -> bool:
        """Return whether the lease has run out by the store's clock."""
        return self.expires <= now

    def put(self, *, expected: int | None) -> Put:
        """Return the write that puts this lease down, if its document has the expected version."""
        value = {
            "holder": asdict(self.holder),
            "token": self.token,
            "acquired": format_instant(self.acquired),
            "expires": format_instant(self.expires),
        }
        return Put(LEASE, self.key, value, expected)

    def renewed(self, now: datetime, duration: timedelta) -> Lease:
        """Return the lease as it stands after a heartbeat at `now`."""
        return Lease(self.key, self.holder, self.token, self.acquired, now + duration, self.version)

    @classmethod
    def from_document(cls, document: Document) -> Lease:
        """Return the lease that a document holds."""
        value: Mapping[str, Any] = document.value
        return cls(
            key=document.key,
            holder=Holder(**value["holder"]),
            token=value["token"],
            acquired=parse_instant(value["acquired"]),
            expires=parse_instant(value["expires"]),
            version=document.version,
        )
