"""Numbers with their nouns, and lists that are cut, for messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from string import Formatter
from typing import Any

from lakewright.errors.phrase import Phrase

MOST_NAMED = 5
"""Values of a list that a text of a template names."""

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


def filled(template: str, values: Mapping[str, Any]) -> Phrase:
    """Return a template with values in the place of their names.

    A list is shown by its first values. `{names:slice}` is a number or the length of a list with a noun, and
    `{names:is|are}` the word for it, in which `#` stands for the number; `{share:%}` is a percentage.

    Example:
        >>> filled("{names:slice} {names:is|are} late: {names}", {"names": ["a", "b"]})
        '2 slices are late: a, b'
    """
    parts = []
    for literal, name, form, _ in Formatter().parse(template):
        parts += [literal] if name is None else [literal, _shown(values[name], form or "")]
    return Phrase(*parts)


def _shown(value: Any, form: str) -> str:
    listed = value if isinstance(value, list | tuple) else [value]
    if not form:
        return first_of([each if isinstance(each, str) else str(each) for each in listed], MOST_NAMED)
    if form == "%":
        return f"{int(value * 100)} %"
    number = len(value) if listed is value else int(value)
    if "|" not in form:
        return counted(number, form)
    one, several = form.split("|")
    return (one if number == 1 else several).replace("#", f"{number:,}")


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
