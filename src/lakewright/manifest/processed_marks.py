"""Marks of what an application has processed so far, which only processing moves on.

The number of processed items and the numbers of commits also change with an undo, and with an attempt that
fails.
"""

from __future__ import annotations

from lakewright.manifest.record import Application
from lakewright.manifest.store import Put, Store

_PROCESSED = "processed"
"""The kind of the documents whose versions are the marks. They are not exported: versions differ by store."""


def processed_put(application: Application) -> Put:
    """Return the put that moves the mark of an application on."""
    return Put(_PROCESSED, str(application), {})


def processed_mark(store: Store, application: Application) -> str:
    """Return the mark of what an application has processed so far; it differs after each slice."""
    document = store.document(_PROCESSED, str(application))
    return "0" if document is None else str(document.version)
