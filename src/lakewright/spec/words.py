"""Numbers with their nouns, and lists that are cut, for messages."""

from __future__ import annotations

from collections.abc import Sequence

from lakewright.errors.phrase import Phrase

UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


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


def duration(seconds: float) -> str:
    """Return a duration for people to read.

    Example:
        >>> duration(0.04), duration(12.34), duration(754)
        ('0.0 s', '12.3 s', '12 min 34 s')
    """
    if seconds < 60:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    at = next(at for at, (size, _) in enumerate(UNITS) if whole >= size)
    (size, unit), (smaller, smaller_unit) = UNITS[at : at + 2]
    return f"{whole // size} {unit} {whole % size // smaller} {smaller_unit}"
