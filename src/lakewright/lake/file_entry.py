"""A file in a listing, and which names Spark's readers skip."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["FileEntry", "is_hidden"]


@dataclass(frozen=True, slots=True)
class FileEntry:
    """One file that Spark's readers read.

    Attributes:
        name: Its path below the folder that was listed, with `/` between levels.
        size: In bytes.
        modified: In nanoseconds (local) or milliseconds since 1970.
    """

    name: str
    size: int
    modified: int


def is_hidden(name: str) -> bool:
    """Return whether Spark's readers skip a name; that of a partition's folder may start with `_`."""
    return name.startswith(".") or (name.startswith("_") and "=" not in name)
