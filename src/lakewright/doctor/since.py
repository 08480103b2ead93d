"""Since which version of a table something has been wrong with it.

Source: Delta's documentation, "Query an older snapshot of a table (time travel)".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache

__all__ = ["first_broken"]

Counts = Mapping[str, int]


def first_broken(
    rules: Iterable[str], versions: Sequence[int], count_at: Callable[[int], Counts | None]
) -> dict[str, int | None]:
    """Return for each rule the first version from which on it doesn't hold; None where that can't be told.

    What is broken is supposed to have stayed so; the versions are halved, each is looked at once.

    Args:
        rules: Rules that don't hold of the last version.
        versions: Of the table, in order.
        count_at: Rows of each rule in a version; None where that version can't be read any more.

    Example:
        >>> first_broken(["gap"], [0, 1, 2, 3, 4], lambda version: {"gap": int(version >= 3)})
        {'gap': 3}
    """
    seen = cache(count_at)

    def first(rule: str) -> int | None:
        low, high = 0, len(versions) - 1
        while low < high:
            middle = (low + high) // 2
            counts = seen(versions[middle])
            if counts is not None and counts.get(rule):
                high = middle
            else:
                low = middle + 1
        before = seen(versions[high - 1]) if high else None
        return versions[high] if high == 0 or before is not None else None

    return {rule: first(rule) for rule in rules}
