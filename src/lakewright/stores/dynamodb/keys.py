"""The table's keys, which hold at most 1,024 bytes, although ids may have 2,000.

Keys sort as their texts do, except for texts that share their first 890 bytes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from heapq import merge
from itertools import groupby
from typing import TypeVar

SHARDS = 8
"""Partitions that items and their records are spread over; DynamoDB limits the rate of each one."""

LONGEST = 900
"""Maximum bytes of a text that its key contains unchanged."""

STEM = 890
"""Leading bytes by which keys always sort; fewer than `LONGEST`, as a character has up to four bytes."""

SEPARATOR = "\x01\x01"
"""Stands between item id and sequence in a record's key; sorts before any continuation of an item id."""

T = TypeVar("T")


def shard(item_id: str) -> int:
    """Return the partition number of an item and its records."""
    return hashlib.sha256(item_id.encode()).digest()[0] % SHARDS


def sort_key(text: str) -> str:
    """Return the sort key of a text, which is never empty and differs for different texts.

    A text that is too long for a key is cut, and a digest of it is added.
    """
    escaped = _escaped(text)
    if len(escaped.encode()) <= LONGEST:
        return f"={escaped}"
    return f"={_cut(escaped, LONGEST)}\x01{_digest(escaped)}"


def record_sort_key(item_id: str, sequence: int | None = None) -> str:
    """Return the sort key of a record, or the common prefix of an item's records without a sequence."""
    return f"{sort_key(item_id)}{SEPARATOR}{'' if sequence is None else format(sequence, '010d')}"


def sort_key_prefix(prefix: str) -> str:
    """Return the common prefix of the sort keys of texts with a prefix; a few other keys may share it."""
    return f"={_cut(_escaped(prefix), STEM)}"


def in_order(rows: Iterable[tuple[str, T]], *, is_descending: bool = False) -> Iterator[tuple[str, T]]:
    """Yield pairs of a text and a value, sorted by sort key, in the order of their texts."""
    for _, group in groupby(rows, key=lambda row: _cut(_escaped(row[0]), STEM)):
        yield from sorted(group, key=lambda row: row[0], reverse=is_descending)


def merged(sources: Iterable[Iterable[tuple[str, T]]]) -> Iterator[tuple[str, T]]:
    """Merge sources of pairs that are each sorted by text."""
    return merge(*sources, key=lambda row: row[0])


def _escaped(text: str) -> str:
    """Return a text that does not contain the separator; texts sort as before."""
    return text.replace("\x01", "\x01\x02")


def _cut(text: str, longest: int) -> str:
    return text.encode()[:longest].decode(errors="ignore")


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
