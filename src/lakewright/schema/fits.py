"""Which type holds the values of another, and the narrowest type that holds those of both.

Source: the rules of reading, "Inference"; Delta's documentation, "Type widening".
"""

from __future__ import annotations

from lakewright.schema.scalars import FLOATS, WHOLE, digits_of
from lakewright.schema.shape import NESTED, parts, plain_type, united
from lakewright.schema.types import MOST_DIGITS, VOID, Decimal, Scalar, Type

_ALSO_FIT = frozenset(
    [*((whole, "double") for whole in ("tinyint", "smallint", "int")), FLOATS, ("date", "timestamp_ntz")]
)


def fits(narrow: Type, wide: Type) -> bool:
    """Return whether a type can hold every value of a narrower one without loss. It is a partial order.

    Example:
        >>> fits(Scalar("int"), Scalar("bigint")), fits(Scalar("bigint"), Scalar("int"))
        (True, False)
    """
    narrow, wide = plain_type(narrow), plain_type(wide)
    if narrow in (wide, VOID):
        return True
    if isinstance(narrow, NESTED):
        found = parts(narrow, wide)
        return type(narrow) is type(wide) and all(
            twin is not None and fits(part, twin) for _, part, twin in found
        )
    return _scalar_fits(narrow, wide)


def _scalar_fits(narrow: Type, wide: Type) -> bool:
    new, old = digits_of(wide), digits_of(narrow)
    if isinstance(narrow, Scalar) and isinstance(wide, Scalar):
        if (narrow.name, wide.name) in _ALSO_FIT:
            return True
        return (
            narrow.name in WHOLE and wide.name in WHOLE and WHOLE.index(narrow.name) < WHOLE.index(wide.name)
        )
    if not isinstance(wide, Decimal) or new is None or old is None:
        return False
    return new[0] >= old[0] and new[1] >= old[1]


def merge(one: Type, other: Type) -> Type | None:
    """Return the narrowest type for the values of two types; None if there is none.

    Each value of both fits it, or is a misfit of its own: whole numbers beyond 2^53 beside doubles, and times
    without an offset, which are those of the lake's zone, beside instants. Structs have the fields of both,
    matched by name in any case, those of the first one first. What has no type takes the other's.

    Example:
        >>> merge(Decimal(10, 2), Decimal(14, 4)), merge(Scalar("int"), Scalar("date"))
        (Decimal(precision=14, scale=4), None)
    """
    return united(plain_type(one), plain_type(other), _merged_parts)


def _merged_parts(one: Type, other: Type) -> Type | None:
    if fits(one, other):
        return other
    return one if fits(other, one) else _merged_scalars(one, other)


def _merged_scalars(one: Type, other: Type) -> Type | None:
    names = {one.ddl, other.ddl}
    if names == {"timestamp", "timestamp_ntz"} or (names & {"timestamp"} and "date" in names):
        return Scalar("timestamp")
    first, second = digits_of(one), digits_of(other)
    if names & set(FLOATS) and (names <= set(FLOATS) or first is not None or second is not None):
        return Scalar("double")
    if first is None or second is None:
        return None
    whole, places = max(first[0], second[0]), max(first[1], second[1])
    return Decimal(whole + places, places) if whole + places <= MOST_DIGITS else None


def widened(table: Type, slice_: Type) -> Type:
    """Return the type of a table's column, widened to that of a slice as far as Delta does without rewriting.

    Structs get the fields that they lack. All else stays as it is.

    Source: Delta's documentation, "Type widening" (automatic schema evolution).
    """
    return united(table, slice_, _widened_part) or table


def _widened_part(table: Type, slice_: Type) -> Type:
    of_one_kind = (
        (isinstance(table, Decimal) and isinstance(slice_, Decimal))
        or (table.ddl in WHOLE and slice_.ddl in WHOLE)
        or (table.ddl, slice_.ddl) == FLOATS
    )
    return slice_ if of_one_kind and fits(table, slice_) else table
