"""Which columns a CSV file of a relation has, and what may be wrong with its header.

Spark would give all files the declared columns by position. A file whose columns are in another order would
be read with wrong values, and further columns would be lost.
"""

from __future__ import annotations

from collections.abc import Sequence

from lakewright.schema.names import look_alike, shown
from lakewright.spec.models.fields import Field, parse_type

__all__ = ["columns_of_file", "header_doubt"]

_TEXT = parse_type("string")

_SEPARATORS = (";", "\t", "|", ",")


def columns_of_file(line: Sequence[str], declared: Sequence[Field], *, has_header: bool) -> tuple[Field, ...]:
    """Return the columns to read a file with, in the order of its fields.

    Where a header names a declared column at another place than the declaration, columns are matched by name.
    Otherwise the place counts, as Flowman has it, so that a declaration may rename columns. Fields that are
    not declared are texts that nobody selects.

    Args:
        line: The values of its first record.
        declared: The declared columns.
        has_header: Whether the record has the names of the columns.

    Raises:
        ValueError: A column is not found by name, but the header has one that only looks like it.

    Example:
        >>> declared = [Field(name="id", type=_TEXT), Field(name="price", type=_TEXT)]
        >>> [each.name for each in columns_of_file(["price", "more", "id"], declared, has_header=True)]
        ['price', '_c1', 'id']
        >>> [each.name for each in columns_of_file(["ID", "Preis"], declared, has_header=True)]
        ['id', 'price']
    """
    names = _declared_names(line, declared) if has_header else []
    places = {field.name.lower(): place for place, field in enumerate(declared)}
    # Where a header has a name twice, the first of them is meant.
    if all(
        places.get(name, place) == place for place, name in enumerate(names) if names.index(name) == place
    ):
        return (*declared[: len(line)], *map(_other, range(len(declared), len(line))))
    for field in declared:
        if field.name.lower() not in names and (other := look_alike(field.name, line)) is not None:
            raise ValueError(
                f"it has {shown(other[0])}, which only looks like the declared column {shown(field.name)}"
            )
    left = {field.name.lower(): field for field in declared}
    return tuple(left.pop(name) if name in left else _other(place) for place, name in enumerate(names))


def _declared_names(line: Sequence[str], declared: Sequence[Field]) -> list[str]:
    """Return the names of a header in lower case; a column's former name counts as its name."""
    present = {field.name.lower() for field in declared}
    former = {field.renamed_from.lower(): field.name.lower() for field in declared if field.renamed_from}
    return [name if name in present else former.get(name, name) for name in map(str.lower, line)]


def header_doubt(
    line: Sequence[str],
    separator: str,
    columns: Sequence[Field] = (),
    declared: Sequence[Field] | None = None,
) -> str | None:
    """Return what may be wrong with the header of a file; None if nothing is.

    Args:
        line: Its values.
        separator: What separates its columns.
        columns: The columns to read the file with.
        declared: The declared columns, if there are any.
    """
    sign = _other_separator(line, separator)
    if sign is not None and (declared is None or len(declared) > 1):
        sign = sign.replace("\t", "\\t")
        return f'is one column. If `{sign}` separates its columns, set `options: {{sep: "{sign}"}}`'
    renamed = _renamed(line, columns, declared or ())
    if renamed is None:
        return None
    name, other = renamed
    return (
        f"has {name} where the schema has {other}, which is read by position. If it is the same column, "
        f"declare `renamedFrom: {name}`; otherwise correct the schema"
    )


def _renamed(
    line: Sequence[str], columns: Sequence[Field], declared: Sequence[Field]
) -> tuple[str, str] | None:
    """Return the first name of a header that differs from that of the column which is read, and that one."""
    wanted = {field.name for field in declared}
    for own, name, field in zip(line, _declared_names(line, declared), columns, strict=False):
        if field.name in wanted and name != field.name.lower():
            return own if own.isprintable() else shown(own), field.name
    return None


def _other(place: int) -> Field:
    return Field(name=f"_c{place}", type=_TEXT)


def _other_separator(line: Sequence[str], separator: str) -> str | None:
    """Return what probably separates the columns of a header that has only one; None if it has several."""
    found = [sign for sign in _SEPARATORS if sign in line[0]] if len(line) == 1 else []
    return next((sign for sign in found if sign != separator), None)
