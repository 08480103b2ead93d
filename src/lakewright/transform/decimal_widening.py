"""Decimals of which no type of Spark holds all digits, where rows of several frames are put together.

Spark takes as many digits before the decimal point as any of them has, and cuts fractions without a word.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lakewright.schema.types import Array, Decimal, MapOf, Struct, Type

__all__ = ["cut_decimals"]

_MOST_DIGITS = 38

_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 20}
"""Digits of the decimal that Spark makes of a whole number."""


def cut_decimals(types: Sequence[Type], path: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield each value of a column whose fractions Spark would cut, as its path and its different types.

    Args:
        types: The types that the column has in each of the frames.
        path: The name of the column.

    Example:
        >>> list(cut_decimals([Decimal(38, 10), Decimal(38, 0)], "amount"))
        [('amount', ('decimal(38,10)', 'decimal(38,0)'))]
        >>> list(cut_decimals([Decimal(18, 2), Decimal(20, 0)], "amount"))
        []
    """
    if all(isinstance(each, Struct) for each in types):
        yield from _of_fields([each for each in types if isinstance(each, Struct)], path)
    elif all(isinstance(each, Array) for each in types):
        yield from cut_decimals([each.element for each in types if isinstance(each, Array)], path)
    elif all(isinstance(each, MapOf) for each in types):
        yield from cut_decimals([each.value for each in types if isinstance(each, MapOf)], path)
    else:
        digits = [_digits(each) for each in types]
        known = [each for each in digits if each is not None]
        is_decimal = len(known) == len(digits) and any(isinstance(each, Decimal) for each in types)
        if (
            is_decimal
            and max(before for before, _ in known) + max(after for _, after in known) > _MOST_DIGITS
        ):
            yield path, tuple(dict.fromkeys(each.ddl for each in types))


def _of_fields(types: Sequence[Struct], path: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    by_name: dict[str, list[Type]] = {}
    for struct in types:
        for field in struct.fields:
            by_name.setdefault(field.name.lower(), []).append(field.type)
    for name, found in by_name.items():
        yield from cut_decimals(found, f"{path}.{name}")


def _digits(kind: Type) -> tuple[int, int] | None:
    """Return the digits of a number before and after the decimal point; None for other types."""
    if isinstance(kind, Decimal):
        return kind.precision - kind.scale, kind.scale
    return (_DIGITS[kind.ddl], 0) if kind.ddl in _DIGITS else None
