"""The separator of a CSV slice whose header was read as one column, as it has another one than declared."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

__all__ = ["other_separator", "separator_remedy"]

_SIGNS = (";", "\t", "|")


def other_separator(names: Iterable[str], wanted: Iterable[str]) -> str | None:
    """Return the sign that seems to separate the fields of a header, or None.

    Args:
        names: The columns as they were read.
        wanted: The columns that are declared, of which none is among them.

    Example:
        >>> other_separator(["oid;day;amount"], ["oid"]), other_separator(["oid", "day"], ["id"])
        (';', None)
    """
    headers, declared = list(names), {name.lower() for name in wanted}
    found = [sign for sign in _SIGNS if any(sign in header for header in headers)]
    fits = (sign for sign in found if declared & set(_fields(headers, sign)))
    return next(fits, next(iter(found), None))


def separator_remedy(sign: str, otherwise: str) -> str:
    """Return that a separator may have to be declared, before the remedy if that is not so."""
    named = "tab" if sign == "\t" else sign
    declared = f'declare it: `format: {{kind: csv, separator: "{named}"}}`'
    return f'If "{named}" separates the fields, {declared}. Otherwise: {otherwise[0].lower()}{otherwise[1:]}'


def _fields(headers: Iterable[str], sign: str) -> Iterator[str]:
    return (part.strip(' "').lower() for each in headers for part in each.split(sign))
