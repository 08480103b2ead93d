"""Business keys that rows show, and whether a slice is the whole source or only what is new."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from lakewright.profiling.reason import Code, Reason
from lakewright.profiling.tables import Table
from lakewright.schema.scalars import class_of
from lakewright.schema.types import Type

_MOST_COLUMNS = 12
"""Columns of which keys are made."""

_FEW_ROWS = 20
"""Rows below which a column may be unique by chance."""

_LONGEST = 64
"""Characters of a value of a key."""

_FIRST_ROWS = 500
"""Rows by which most columns are found not to be a key, before all are looked at."""

_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+")
_KEY_WORDS = frozenset(
    ("id", "key", "code", "number", "no", "nr", "num", "uuid", "guid", "ident", "sku", "isbn")
)
_CHANGES = frozenset(("updated", "modified", "changed", "version", "revision", "seq", "sequence", "lsn"))
_PARTS = ("text", "whole", "date", "timestamp", "timestamp_ntz")


@dataclass(frozen=True, slots=True)
class KeyGuess:
    """A business key.

    Attributes:
        columns: Its columns; none if no key was found.
        reason: Why.
        is_sure: Whether names and rows speak for it.
        order_by: The column that orders several versions of a record in a file; None if there is one each.
    """

    columns: tuple[str, ...]
    reason: Reason
    is_sure: bool = True
    order_by: str | None = None


@dataclass(frozen=True, slots=True)
class Overlap:
    """How much of a slice comes again in the next one.

    Attributes:
        share: The smallest share of any pair of slices.
        pairs: The pairs that were compared.
        is_whole: Whether all rows of all these slices were looked at.
    """

    share: float
    pairs: int
    is_whole: bool


@dataclass(frozen=True, slots=True)
class _Column:
    """A column that may be a part of a key."""

    name: str
    rank: int
    kind: str
    is_change: bool
    values: tuple[tuple[Hashable, ...], ...]

    @property
    def is_named(self) -> bool:
        """Whether its name is that of a key."""
        return self.rank < 2


def guess_key(entity: str, slices: Sequence[Sequence[Table]], types: Mapping[str, Type]) -> KeyGuess:
    """Return the shortest key that is unique and never null in each slice.

    Columns whose names are those of keys count more than others, and numbers and times that measure
    something are none.

    Args:
        entity: The name of the entity: `order_id` is the key of `orders`.
        slices: The files that were looked at, by slice; there is at least one.
        types: The types of their columns.
    """
    kind = next(table.kind for found in slices for table in found)
    slices = [[table for table in found if table.has_values and table.rows] for found in slices]
    tables = [table for found in slices for table in found]
    if not tables:
        return KeyGuess((), Reason.of(Code.NOT_LOOKED_INTO, kind=kind), is_sure=False)
    columns = sorted(_columns(entity, slices, types), key=lambda each: each.rank)[:_MOST_COLUMNS]
    files, rows = len(tables), sum(len(table.rows) for table in tables)
    for candidate in _candidates(columns):
        if not _is_unique(candidate):
            continue
        names = tuple(sorted((each.name for each in candidate), key=tables[0].places.__getitem__))
        first, last = candidate[0], candidate[-1]
        if len(candidate) == 2 and first.is_named and last.is_change:
            reason = Reason.of(
                Code.SEVERAL_VERSIONS, column=first.name, order=last.name, files=files, rows=rows
            )
            return KeyGuess((first.name,), reason, order_by=last.name)
        is_sure = any(each.is_named for each in candidate) and (rows >= _FEW_ROWS or first.rank == 0)
        return KeyGuess(names, Reason.of(Code.UNIQUE, files=files, rows=rows), is_sure=is_sure)
    return KeyGuess((), Reason.of(Code.NO_KEY, files=files, rows=rows), is_sure=False)


def _columns(entity: str, slices: Sequence[Sequence[Table]], types: Mapping[str, Type]) -> Iterator[_Column]:
    tables = [table for found in slices for table in found]
    common = [name for name in tables[0].columns if all(name in table.places for table in tables)]
    for place, name in enumerate(common):
        kind = class_of(types[name]) if name in types else "text"
        values = tuple(tuple(each for table in found for each in table.values(name)) for found in slices)
        if kind not in _PARTS or any(None in each for each in values):
            continue
        if any(
            isinstance(value, str) and len(value) > _LONGEST for value in tables[0].values(name)[:_FIRST_ROWS]
        ):
            continue
        words = [word.lower() for word in _WORDS.findall(name)]
        is_change = bool(_CHANGES.intersection(words))
        yield _Column(name, _rank(entity, words, place), kind, is_change, values)


def _rank(entity: str, words: Sequence[str], place: int) -> int:
    """Return how well a column's name and place suit a key, the best first.

    0 is the name of the entity's own key, 1 that of any key, 2 another one of the first column.
    """
    if not _KEY_WORDS.intersection(words[-1:]):
        return 3 if place else 2
    own = "".join(words[:-1])
    return 0 if not own or entity.replace("_", "").startswith(own.removesuffix("s")) else 1


def _candidates(columns: Sequence[_Column]) -> Iterator[tuple[_Column, ...]]:
    """Yield what may be a key, the best first; nothing that has a smaller one inside of it."""
    single = [each for each in columns if _is_single(each)]
    unique = {each.name for each in columns if _is_unique((each,))}
    # A time of change may be unique by chance, and tells versions of one record apart.
    rest = [each for each in columns if each.is_change or each.name not in unique]
    pairs = sorted(combinations(rest, 2), key=_order)
    yield from ((each,) for each in single if each.is_named)
    yield from (pair for pair in pairs if any(each.is_named for each in pair))
    yield from ((each,) for each in single if not each.is_named)
    yield from pairs
    yield from sorted(combinations(rest, 3), key=_order)


def _is_single(column: _Column) -> bool:
    """Return whether a column may be a key alone: times and numbers with other names happen to be unique."""
    is_number = column.kind == "whole" and column.rank < 3
    return not column.is_change and (column.kind == "text" or is_number)


def _order(columns: Sequence[_Column]) -> tuple[int, int]:
    return sum(not each.is_named for each in columns), sum(each.rank for each in columns)


def _is_unique(columns: Sequence[_Column]) -> bool:
    for values in zip(*(each.values for each in columns), strict=True):
        for most in (_FIRST_ROWS, None):
            rows = list(zip(*(each[:most] for each in values), strict=True))
            if len(set(rows)) < len(rows):
                return False
    return True


def overlap_of(
    slices: Sequence[Sequence[Table]], pairs: Sequence[tuple[int, int]], key: Sequence[str]
) -> Overlap | None:
    """Return how much of each slice comes again in the next one, by its key, or by whole rows without a key.

    Args:
        slices: The files of the slices that were looked at.
        pairs: Positions of slices between which there is no other.
        key: The columns of the key.
    """
    shares, is_whole = [], True
    for one, other in pairs:
        keys = [_keys(slices[at], key) for at in (one, other)]
        if not all(keys):
            continue
        is_whole = is_whole and all(table.is_whole for at in (one, other) for table in slices[at])
        shares.append(len(keys[0] & keys[1]) / len(keys[0]))
    return Overlap(min(shares), len(shares), is_whole) if shares else None


def _keys(tables: Sequence[Table], key: Sequence[str]) -> set[tuple[Hashable, ...]]:
    found: set[tuple[Hashable, ...]] = set()
    for table in tables:
        if all(name in table.places for name in key):
            places = [table.places[name] for name in key or table.columns]
            found.update(tuple(row[place] for place in places) for row in table.rows)
    return found
