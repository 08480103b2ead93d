"""Column names that a table can hold, and checks for names that clash.

Source: `processing-strategies.md`, "Common Processing Pipeline" (Normalize column names).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from lakewright.errors import SchemaDriftError
from lakewright.spec.models.column import normal_name

__all__ = ["check_names", "final_names", "normal_name"]


def check_names(names: Iterable[str], reserved: Iterable[str]) -> None:
    """Raise `SchemaDriftError` if names of a slice's columns clash with each other or with system columns.

    Raises:
        SchemaDriftError: Two names differ only in case, or one is the name of a system column.
    """
    taken = {name.lower(): name for name in reserved}
    seen: dict[str, str] = {}
    for name in names:
        key = name.lower()
        if key in taken:
            raise SchemaDriftError(
                f"the slice's column {name!r} has the name of the system column {taken[key]!r}",
                remedy="Give it another name in the source, or a `systemfield_prefix` that no source uses.",
                details={"columns": [name, taken[key]]},
            )
        if key in seen:
            raise _clash(seen[key], name, name)
        seen[key] = name


def final_names(names: Iterable[str], renames: Mapping[str, str], reserved: Iterable[str]) -> dict[str, str]:
    """Return the name of each column in silver: renamed, and without characters that a table can't hold.

    Args:
        names: Columns of the slice, in any case.
        renames: Old to new names; the case of the old ones is ignored.
        reserved: Names that no column of the slice may get.

    Raises:
        SchemaDriftError: A name has no valid character, or two columns would get the same name.

    Example:
        >>> final_names(["net price", "id"], {"ID": "key"}, [])
        {'net price': 'netprice', 'id': 'key'}
    """
    new_names = {old.lower(): new for old, new in renames.items()}
    taken = {name.lower(): name for name in reserved}
    final: dict[str, str] = {}
    owners: dict[str, str] = {}
    for name in names:
        found = normal_name(new_names.get(name.lower(), name))
        key = found.lower()
        if not found:
            raise SchemaDriftError(
                f"the column name {name!r} has no character that a table can hold",
                remedy="Give the column a `newname`.",
                details={"columns": [name]},
            )
        if key in owners or key in taken:
            raise _clash(owners.get(key) or f"system column {taken[key]}", name, found)
        owners[key] = name
        final[name] = found
    return final


def _clash(first: str, second: str, result: str) -> SchemaDriftError:
    return SchemaDriftError(
        f"the columns {first!r} and {second!r} would both be {result!r} in the silver table",
        remedy="Give one of them a `newname`, or rename it with a transformation.",
        details={"columns": [first, second]},
    )
