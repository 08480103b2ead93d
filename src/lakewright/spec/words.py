"""Numbers with their nouns, and lists that are cut, for messages."""

from __future__ import annotations

from collections.abc import Sequence

from lakewright.errors.phrase import Phrase

__all__ = ["counted", "first_of"]


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, in the plural unless it is 1.

    Example:
        >>> counted(1, "slice"), counted(3, "entity"), counted(1200, "business key")
        ('1 slice', '3 entities', '1,200 business keys')
    """
    if number != 1:
        noun = (
            f"{noun.removesuffix('y')}ies" if noun.endswith("y") and noun[-2] not in "aeiou" else f"{noun}s"
        )
    return f"{number:,} {noun}"


def first_of(texts: Sequence[str], most: int, separator: str = ", ") -> str:
    """Return the first texts of a list, and how many more there are.

    Example:
        >>> first_of(["a", "b", "c"], 2), first_of(["a", "b"], 2)
        ('a, b and 1 more', 'a, b')
    """
    more = len(texts) - most
    shown = Phrase.joined(separator, texts[:most])
    return Phrase(shown, f" and {more:,} more") if more > 0 else shown
