"""Errors of the manifest and its records."""

from __future__ import annotations

from lakewright.errors.base import LakewrightError
from lakewright.errors.phrase import Command, Phrase

__all__ = [
    "IllegalTransition",
    "ManifestCorrupt",
    "SequenceConflict",
]


class ManifestCorrupt(LakewrightError):
    """The manifest's records contradict each other, or its storage is damaged."""

    code = "manifest_corrupt"
    default_remedy = Phrase("Run ", Command("manifest", "fsck"), " to find the damage.")


class IllegalTransition(ManifestCorrupt):
    """The item's state does not allow this record. Nothing was written."""

    code = "illegal_transition"
    default_remedy = Phrase("See the item's records with ", Command("manifest", "show"), ".")


class SequenceConflict(LakewrightError):
    """The item has changed since it was read. Nothing was written.

    Attributes:
        details: The `expected` and the `actual` sequence number.
    """

    code = "sequence_conflict"
