"""Numbers with their nouns, for messages."""

from __future__ import annotations

__all__ = ["counted"]


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
