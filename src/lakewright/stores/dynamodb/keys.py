"""Where things lie in the table: its keys, which hold no more than 1,024 bytes where ids may have 2,000.

Sorted by their places, texts are sorted by themselves but for those that share their first 890 bytes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from heapq import merge
from itertools import groupby
from typing import TypeVar

__all__ = ["SHARDS", "in_order", "merged", "place", "place_of_record", "place_prefix", "shard", "whole_key"]

SHARDS = 8
"""Parts that items and their records are spread over; DynamoDB bounds what one of them takes a second."""

LONGEST = 900
"""Bytes of a text that are a part of its place."""

STEM = 890
"""Bytes by which texts are sure to be sorted; a character has up to four, so fewer than `LONGEST`."""

SEPARATOR = "\x01\x01"
"""Between a record's item and its number; sorts before whatever an item id goes on with."""

T = TypeVar("T")


def shard(item_id: str) -> int:
    """Return the part that an item and its records belong to."""
    return hashlib.sha256(item_id.encode()).digest()[0] % SHARDS


def whole_key(text: str) -> str:
    """Return a text as long as it fits a partition's key, or else what stands for it."""
    return text if len(text.encode()) <= LONGEST else f"{_cut(text, LONGEST)}\x01{_digest(text)}"


def place(text: str) -> str:
    """Return a text's place among others, never empty; different texts have different places."""
    return f"={whole_key(_escaped(text))}"


def place_of_record(item_id: str, sequence: int | None = None) -> str:
    """Return the place of a record, or what the places of all records of an item begin with."""
    return f"{place(item_id)}{SEPARATOR}{'' if sequence is None else format(sequence, '010d')}"


def place_prefix(prefix: str) -> str:
    """Return what the places of all texts with a prefix begin with; those of a few others may too."""
    return f"={_cut(_escaped(prefix), STEM)}"


def in_order(rows: Iterable[tuple[str, T]], *, is_descending: bool = False) -> Iterator[tuple[str, T]]:
    """Yield texts, sorted by their places, with what belongs to them, sorted by themselves."""
    for _, group in groupby(rows, key=lambda row: _cut(_escaped(row[0]), STEM)):
        yield from sorted(group, key=lambda row: row[0], reverse=is_descending)


def merged(sources: Iterable[Iterable[tuple[str, T]]]) -> Iterator[tuple[str, T]]:
    """Yield what sorted sources yield, sorted."""
    return merge(*sources, key=lambda row: row[0])


def _escaped(text: str) -> str:
    """Return a text that the separator can't be mistaken for a part of, sorted as before."""
    return text.replace("\x01", "\x01\x02")


def _cut(text: str, longest: int) -> str:
    return text.encode()[:longest].decode(errors="ignore")


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
